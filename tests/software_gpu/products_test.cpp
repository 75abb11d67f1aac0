// Matrix products by the plug-in that ships: what GPUs multiply at once is right. tests/bench/gpu_test.py has
// wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::SizeIs;

/// Larger than the blocks that repeat in the matrices.
constexpr GpuProductWork kShort{.side = 96, .warm_up = {0.001}, .time = {0.01}, .fewest = 5, .limit = {30}};

TEST(Products, AreRightOnAllGpusAtOnce) {
  constexpr std::array kGpus{2, 0, 1};
  for (const bool again : {false, true}) {
    const GpuProducts made = need_gpu_plugin().multiply(kGpus, kShort);
    EXPECT_EQ(made.why_not, "");
    EXPECT_EQ(made.way, "products of 96 x 96 matrices of float16 by cuBLAS 13.1.0");
    ASSERT_THAT(made.rates, SizeIs(kGpus.size())) << again;
    for (const GpuProductRates& of_gpu : made.rates) {
      EXPECT_THAT(of_gpu.TFLOPs, SizeIs(Ge(5u)));
      EXPECT_THAT(of_gpu.TFLOPs, Each(Gt(0)));
      EXPECT_EQ(of_gpu.wrong_elements, 0u);
      EXPECT_GE(of_gpu.products, 1 + 3 + 5);
    }
  }
}

TEST(Products, ThatWereNotMadeAreWrong) {
  // The software cuBLAS multiplies nothing that is so large.
  constexpr std::array kGpus{0};
  const GpuProducts made =
      need_gpu_plugin().multiply(kGpus, {.side = 257, .warm_up = {0}, .time = {0}, .fewest = 1});
  EXPECT_GT(made.rates.at(0).wrong_elements, 257u * 256u);
}

/// GPU 1 stops in the middle. Nothing waits for it longer, the end of the process neither.
[[noreturn]] void multiply_where_one_hangs() {
  const std::string plan = ::testing::TempDir() + "products.plan";
  std::ofstream(plan) << "devices 2\nhung stream on device 1 at operation 12\n";
  setenv("POLYRING_SOFTWARE_GPU", plan.c_str(), 1);
  GpuProductWork work = kShort;
  work.limit = {0.3};
  try {
    need_gpu_plugin().multiply(std::array{0, 1}, work);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(static_cast<int>(error.code()));
  }
  std::exit(0);
}

TEST(Products, EndWithTheTimeLimitWhereAGpuHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(multiply_where_one_hangs(), ::testing::ExitedWithCode(static_cast<int>(ExitCode::timeout)),
              "GPU 1 has not finished matrix products within 300 ms");
}

TEST(Products, OfAGpuThatDoesNotExistFail) {
  constexpr std::array kGpus{0, 99};
  try {
    need_gpu_plugin().multiply(kGpus, kShort);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::cuda);
  }
}

}  // namespace
}  // namespace polyring
