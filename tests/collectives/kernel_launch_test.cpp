// What the launches make of their parameters: CUDA's calls are replaced by some that run the kernels' bodies
// on the host at once.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/error.hpp"
#include "collectives/cuda/device_kernels.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/kernel_list.hpp"
#include "collectives/cuda/kernel_table.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/make_arguments.hpp"
#include "collectives/runtime/kernels.hpp"

namespace polyring {

// In place of their addresses, the names of the kernels.
#define POLYRING_TEXT(name) #name
#define POLYRING_NAME_TEXT(name) POLYRING_TEXT(name),
#define POLYRING_REDUCTION_TEXT(op, from, to) POLYRING_NAME_TEXT(POLYRING_REDUCTION_NAME(op, from, to))
#define POLYRING_OTHER_TEXT(name, ...) POLYRING_NAME_TEXT(POLYRING_OTHER_NAME(name))
const void* const kReductionKernels[] = {POLYRING_REDUCTIONS(POLYRING_REDUCTION_TEXT)};
const OtherKernels kOtherKernels = {POLYRING_OTHERS(POLYRING_OTHER_TEXT)};

namespace {

struct Launched {
  std::string_view kernel;
  unsigned blocks = 0;
  cudaStream_t stream = nullptr;
};
Launched launched;
cudaError_t answer = cudaSuccess;

}  // namespace
}  // namespace polyring

using polyring::answer;
using polyring::launched;

cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** parameters,
                             std::size_t shared_bytes, cudaStream_t stream) {
  const auto* const name = static_cast<const char*>(kernel);
  EXPECT_EQ(threads.x, unsigned{polyring::kBlockThreads});
  EXPECT_EQ(blocks.y * blocks.z * threads.y * threads.z, 1u);
  EXPECT_EQ(shared_bytes, 0u);
  if (answer == cudaSuccess) {
    polyring::find_host_kernel(name)->run(parameters[0], {blocks.x, threads.x}, {});
    launched = {name, blocks.x, stream};
  }
  return answer;
}
cudaError_t cudaGetLastError() { return answer; }
cudaError_t cudaGetDevice(int* device) {
  *device = 3;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "out of luck"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorLuck"; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  EXPECT_EQ(attribute, cudaDevAttrMultiProcessorCount);
  EXPECT_EQ(device, 3);
  *value = 10;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          std::size_t) {
  EXPECT_EQ(threads, polyring::kBlockThreads);
  *blocks = std::string_view(static_cast<const char*>(kernel)) == "polyring_copy" ? 4 : 3;
  return cudaSuccess;
}

namespace polyring {
namespace {

const auto kStream = reinterpret_cast<cudaStream_t>(std::uintptr_t{64});

template <typename T>
std::byte* bytes(std::vector<T>& data) {
  return reinterpret_cast<std::byte*>(data.data());
}

TEST(LaunchReduce, TakesTheKernelOfEachReduction) {
  const std::map<ElementKind, std::vector<ElementKind>> results = {
      {ElementKind::float32, {ElementKind::float32, ElementKind::float16, ElementKind::bfloat16}},
      {ElementKind::float64, {ElementKind::float64}},
      {ElementKind::float16, {ElementKind::float16, ElementKind::float32}},
      {ElementKind::bfloat16, {ElementKind::bfloat16, ElementKind::float32}},
      {ElementKind::int32, {ElementKind::int32}},
      {ElementKind::int64, {ElementKind::int64}}};
  std::vector<std::uint64_t> left(50);
  std::vector<std::uint64_t> right(50);
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = 0x123456789abcdef * i;
    right[i] = 0xf1e2d3c4b5a6978 * (i + 1);
  }
  const std::byte* const operands[] = {bytes(left), bytes(right)};
  for (const auto& [kind, kinds] : results) {
    for (const ElementKind result : kinds) {
      for (const ReduceOp op : kReduceOps) {
        std::vector<std::uint64_t> made(50);
        std::vector<std::uint64_t> expected(50);
        std::byte* const to[] = {bytes(made)};
        std::byte* const expected_to[] = {bytes(expected)};
        const Reduction reduction{kind, op, 3, result};
        launch_reduce(reduction, to, operands, 50, 7, kStream);
        combine_many(reduction, expected_to, operands, 50, Stores::cached);
        EXPECT_EQ(made, expected) << to_text(op) << " of " << to_text(kind) << " to " << to_text(result);
        EXPECT_EQ(launched.stream, kStream);
        EXPECT_EQ(launched.blocks, 1u);
      }
    }
  }
}

TEST(LaunchReduce, TakesAsManyBlocksAsThereIsWorkForAndAreAllowed) {
  std::vector<float> from(1 << 20, 2);
  std::vector<float> to(from.size());
  const std::byte* const operands[] = {bytes(from)};
  std::byte* const results[] = {bytes(to)};
  launch_reduce({}, results, operands, 1 << 20, 5, kStream);
  EXPECT_EQ(launched.blocks, 5u);
  EXPECT_EQ(to, from);
  launch_reduce({}, results, operands, 1 << 20, 1000, kStream);
  EXPECT_EQ(launched.blocks, 128u);
}

TEST(Launch, DoesNothingWithoutWork) {
  launched = {};
  launch_reduce({}, {}, {}, 0, 5, kStream);
  launch_copy(nullptr, nullptr, 0, 5, kStream);
  launch_fill(nullptr, 0, 1, 5, kStream);
  launch_compare(nullptr, nullptr, 0, 4, nullptr, 5, kStream);
  EXPECT_EQ(launched.kernel, "");
}

TEST(Launch, CopiesFillsAndCompares) {
  std::vector<std::uint32_t> left(1000);
  std::vector<std::uint32_t> right(1000);
  launch_fill(bytes(left), 4000, 0x01020304, 5, kStream);
  EXPECT_EQ(launched.kernel, "polyring_fill");
  EXPECT_EQ(left, std::vector<std::uint32_t>(1000, 0x01020304));
  launch_copy(bytes(right), bytes(left), 3996, 5, kStream);
  EXPECT_EQ(launched.kernel, "polyring_copy");
  std::uint64_t differing = 0;
  launch_compare(bytes(left), bytes(right), 1000, 4, &differing, 5, kStream);
  EXPECT_EQ(differing, 1u);
}

TEST(LaunchWork, TakesAllTheBlocksItIsGiven) {
  float result = 0;
  launch_work(&result, 3, 9, kStream);
  EXPECT_EQ(launched.kernel, "polyring_work");
  EXPECT_EQ(launched.blocks, 9u);
  EXPECT_EQ(launched.stream, kStream);
  EXPECT_EQ(result, 1.75F);
}

TEST(LaunchExchange, RunsAllRanksPartsOnTheirMemory) {
  // The one peer has come and gone twice already.
  std::vector<std::int32_t> own{1, 2, 3};
  std::vector<std::int32_t> other{10, 20, 30};
  std::vector<std::int32_t> sum(3);
  std::vector<std::int32_t> copies(3);
  FlagPair mine{2, 2};
  FlagPair theirs{};
  StepCounters counters{};
  std::uint32_t epoch = 0;
  std::uint32_t words[2] = {};
  ExchangeArguments arguments{};
  arguments.own = &mine;
  arguments.theirs[0] = &theirs;
  arguments.counters = &counters;
  arguments.epochs = &epoch;
  arguments.watch = {&words[0], &words[1], 1};
  arguments.peer_count = 1;
  const Reduction reduction{ElementKind::int32, ReduceOp::sum};
  const std::byte* const operands[] = {bytes(own), bytes(other)};
  std::byte* const results[] = {bytes(sum)};
  std::byte* const places[] = {bytes(copies)};
  arguments.reduce = reduce_arguments(reduction, results, operands, 3);
  launch_exchange(reduction, arguments, 5, kStream);
  EXPECT_THAT(sum, testing::ElementsAre(11, 22, 33));
  EXPECT_EQ(theirs.done, 1u);
  arguments.reduce = copy_arguments(places, bytes(own), 12);
  launch_exchange_copy(arguments, 5, kStream);
  EXPECT_EQ(launched.kernel, "polyring_copy");
  EXPECT_EQ(copies, own);
}

TEST(ExchangeBlocks, AreThoseThatAllMultiprocessorsHoldAtOnce) {
  EXPECT_EQ(exchange_blocks({}), 30);
  EXPECT_EQ(exchange_copy_blocks(), 40);
}

TEST(Launch, SaysWhatCudaRefused) {
  std::vector<std::byte> memory(16);
  answer = cudaErrorInvalidValue;
  try {
    launch_fill(memory.data(), 16, 1, 5, kStream);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::cuda);
    EXPECT_THAT(error.what(), testing::HasSubstr("launch the kernel for a fill (cudaLaunchKernel)"));
    EXPECT_THAT(error.what(), testing::HasSubstr("out of luck"));
  }
  answer = cudaSuccess;
}

}  // namespace
}  // namespace polyring
