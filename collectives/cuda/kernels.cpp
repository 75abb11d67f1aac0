#include "collectives/cuda/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "collectives/cuda/check.hpp"
#include "collectives/cuda/device_kernels.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/kernel_list.hpp"
#include "collectives/cuda/make_arguments.hpp"

namespace polyring {
namespace {

using cuda::check;

struct ReductionRow {
  ReduceOp op;
  ElementKind from;
  ElementKind to;
};

#define POLYRING_REDUCTION_ROW(op, from, to) ReductionRow{ReduceOp::op, ElementKind::from, ElementKind::to},
constexpr std::array kReductions{POLYRING_REDUCTIONS(POLYRING_REDUCTION_ROW)};

/// An average is a sum that is divided.
const void* kernel_of(const Reduction& reduction) {
  const ReduceOp op = reduction.op == ReduceOp::avg ? ReduceOp::sum : reduction.op;
  const auto row = std::ranges::find_if(kReductions, [&](const ReductionRow& known) {
    return known.op == op && known.from == reduction.kind && known.to == reduction.result;
  });
  assert(row != kReductions.end());
  return kReductionKernels[row - kReductions.begin()];
}

std::string described(const Reduction& reduction) {
  return fmt::format("{} of {}", to_text(reduction.op), to_text(reduction.kind));
}

/// `bytes` are those of the largest buffer.
template <typename Arguments>
void launch(const void* kernel, const Arguments& arguments, std::int64_t bytes, int max_blocks,
            cudaStream_t stream, std::string_view what) {
  void* parameters[] = {const_cast<Arguments*>(&arguments)};
  const dim3 blocks(static_cast<unsigned>(blocks_for(bytes, max_blocks)));
  check(cudaLaunchKernel(kernel, blocks, dim3(kBlockThreads), parameters, 0, stream),
        fmt::format("launch the kernel for a {} (cudaLaunchKernel)", what));
}

std::int64_t largest_buffer(const Reduction& reduction, const ExchangeArguments& arguments) {
  const std::int64_t element = std::max(size_of(reduction.kind), size_of(reduction.result));
  return std::max(arguments.reduce.count * element, arguments.staged_bytes);
}

}  // namespace

void launch_reduce(const Reduction& reduction, std::span<std::byte* const> results,
                   std::span<const std::byte* const> operands, Count count, int max_blocks,
                   cudaStream_t stream) {
  if (results.empty() || count == 0) return;
  ExchangeArguments arguments{};
  arguments.reduce = reduce_arguments(reduction, results, operands, count);
  launch(kernel_of(reduction), arguments, largest_buffer(reduction, arguments), max_blocks, stream,
         described(reduction));
}

void launch_exchange(const Reduction& reduction, const ExchangeArguments& arguments, int max_blocks,
                     cudaStream_t stream) {
  launch(kernel_of(reduction), arguments, largest_buffer(reduction, arguments), max_blocks, stream,
         described(reduction) + " among ranks");
}

void launch_exchange_copy(const ExchangeArguments& arguments, int max_blocks, cudaStream_t stream) {
  launch(kOtherKernels.copy, arguments, std::max(arguments.reduce.count, arguments.staged_bytes), max_blocks,
         stream, "copy among ranks");
}

void launch_messages(const MessageArguments& arguments, int max_blocks, cudaStream_t stream) {
  std::int64_t bytes = 0;
  for (int m = 0; m < arguments.copy_count; ++m) bytes += arguments.copies[m].bytes;
  launch(kOtherKernels.messages, arguments, bytes, max_blocks, stream, "round of messages");
}

void launch_copy(std::byte* to, const std::byte* from, std::size_t bytes, int max_blocks,
                 cudaStream_t stream) {
  if (bytes == 0) return;
  std::byte* const results[] = {to};
  ExchangeArguments arguments{};
  arguments.reduce = copy_arguments(results, from, bytes);
  launch(kOtherKernels.copy, arguments, arguments.reduce.count, max_blocks, stream, "copy");
}

void launch_fill(std::byte* to, std::size_t bytes, std::uint32_t pattern, int max_blocks,
                 cudaStream_t stream) {
  if (bytes == 0) return;
  const FillArguments arguments{to, static_cast<std::int64_t>(bytes), pattern};
  launch(kOtherKernels.fill, arguments, arguments.bytes, max_blocks, stream, "fill");
}

void launch_compare(const std::byte* left, const std::byte* right, Count count, int element_bytes,
                    std::uint64_t* differing, int max_blocks, cudaStream_t stream) {
  if (count == 0) return;
  const CompareArguments arguments{left, right, count, differing, element_bytes};
  launch(kOtherKernels.compare, arguments, count * element_bytes, max_blocks, stream, "comparison");
}

void launch_work(float* result, std::int64_t turns, int blocks, cudaStream_t stream) {
  // Towards a limit of 2: no number on the way is slower than others.
  const WorkArguments arguments{result, turns, 0.5F, 1.0F};
  const std::int64_t for_all = std::int64_t{blocks} * kBlockThreads * kThreadBytes;
  launch(kOtherKernels.work, arguments, for_all, blocks, stream, "load");
}

int blocks_resident(const void* kernel, int threads) {
  int device = 0;
  int multiprocessors = 0;
  int blocks = 0;
  check(cudaGetDevice(&device), "tell the current device (cudaGetDevice)");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "count the device's multiprocessors (cudaDeviceGetAttribute)");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0),
        "tell how many blocks a multiprocessor holds (cudaOccupancyMaxActiveBlocksPerMultiprocessor)");
  return blocks * multiprocessors;
}

int exchange_blocks(const Reduction& reduction) {
  return blocks_resident(kernel_of(reduction), kBlockThreads);
}

int exchange_copy_blocks() { return blocks_resident(kOtherKernels.copy, kBlockThreads); }
int message_blocks() { return blocks_resident(kOtherKernels.messages, kBlockThreads); }

}  // namespace polyring
