#include "collectives/cuda/make_arguments.hpp"

#include <algorithm>
#include <cassert>

#include "base/error.hpp"
#include "collectives/cuda/bodies/body.hpp"

namespace polyring {
namespace {

ReduceArguments with_buffers(std::span<std::byte* const> results,
                             std::span<const std::byte* const> operands) {
  assert(!operands.empty());
  if (operands.size() > kMostOperands || results.size() > kMostResults) {
    throw Error(
        ExitCode::not_available,
        fmt::format("a step of this plan combines {} operands into {} results, and GPU kernels take {} of "
                    "each; choose dimensions or patterns with smaller groups",
                    operands.size(), results.size(), kMostOperands));
  }
  ReduceArguments arguments{};
  std::copy(operands.begin(), operands.end(), arguments.operands);
  std::copy(results.begin(), results.end(), arguments.results);
  arguments.operand_count = static_cast<std::int32_t>(operands.size());
  arguments.result_count = static_cast<std::int32_t>(results.size());
  arguments.divisor = 1;
  return arguments;
}

/// Elements before the first that lies at the beginning of a vector in all buffers, for the smaller of the
/// two kinds; or `count` where there is none.
Count head_of(const Reduction& reduction, std::span<std::byte* const> results,
              std::span<const std::byte* const> operands, Count count) {
  const Count from_size = size_of(reduction.kind);
  const Count to_size = size_of(reduction.result);
  const bool by_results = to_size < from_size && !results.empty();
  const Count head =
      by_results ? to_next_vector(results.front()) / to_size : to_next_vector(operands.front()) / from_size;
  const auto at_vector = [&](const std::byte* buffer, Count size) {
    return to_next_vector(buffer + head * size) == 0;
  };
  const bool all =
      head < count &&
      std::ranges::all_of(operands, [&](const std::byte* buffer) { return at_vector(buffer, from_size); }) &&
      std::ranges::all_of(results, [&](const std::byte* buffer) { return at_vector(buffer, to_size); });
  return all ? head : count;
}

}  // namespace

ReduceArguments reduce_arguments(const Reduction& reduction, std::span<std::byte* const> results,
                                 std::span<const std::byte* const> operands, Count count) {
  assert(reduction.divisor > 0);
  ReduceArguments arguments = with_buffers(results, operands);
  arguments.count = count;
  arguments.head = head_of(reduction, results, operands, count);
  if (reduction.op == ReduceOp::avg) arguments.divisor = reduction.divisor;
  return arguments;
}

ReduceArguments copy_arguments(std::span<std::byte* const> results, const std::byte* from,
                               std::size_t bytes) {
  const std::byte* const operands[] = {from};
  ReduceArguments arguments = with_buffers(results, operands);
  arguments.count = static_cast<Count>(bytes);
  return arguments;
}

}  // namespace polyring
