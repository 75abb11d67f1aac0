// Copies by the plug-in that ships: what they copy is right, in all directions, alone and at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr GpuCopyWork kShort{.size = Bytes{100'000}, .time = {0.001}, .fewest = 3, .limit = {20}};

void expect_right(const std::vector<GpuCopyRates>& rates, std::size_t copies) {
  ASSERT_THAT(rates, SizeIs(copies));
  for (const GpuCopyRates& of_copy : rates) {
    EXPECT_THAT(of_copy.GBps, SizeIs(::testing::Ge(3u)));
    EXPECT_THAT(of_copy.GBps, Each(Gt(0)));
    EXPECT_EQ(of_copy.wrong_bytes, 0u);
    EXPECT_TRUE(of_copy.direct);
  }
}

TEST(Copies, AreRightInAllDirections) {
  const std::unique_ptr<GpuCopies> copies = need_gpu_plugin().make_copies(kShort);
  for (const GpuCopy copy : {GpuCopy{kHostMemory, 0}, GpuCopy{0, kHostMemory}, GpuCopy{0, 1}, GpuCopy{1, 0},
                             GpuCopy{1, 1}, GpuCopy{kHostMemory, 1}})
    expect_right(copies->run(std::span(&copy, 1)), 1);
}

TEST(Copies, AreRightAtOnce) {
  const std::unique_ptr<GpuCopies> copies = need_gpu_plugin().make_copies(kShort);
  std::vector<GpuCopy> both;
  for (int gpu = 0; gpu < 3; ++gpu) {
    both.push_back({kHostMemory, gpu});
    both.push_back({gpu, kHostMemory});
    both.push_back({gpu, (gpu + 1) % 3});
    both.push_back({gpu, gpu});
  }
  expect_right(copies->run(both), both.size());
  expect_right(copies->run(both), both.size());
}

TEST(Copies, OfAGpuThatDoesNotExistFail) {
  const std::unique_ptr<GpuCopies> copies = need_gpu_plugin().make_copies(kShort);
  const GpuCopy copy{kHostMemory, 99};
  try {
    copies->run(std::span(&copy, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::cuda);
  }
}

}  // namespace
}  // namespace polyring
