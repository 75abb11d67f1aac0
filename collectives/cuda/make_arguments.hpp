// Arguments of reductions, made on the host.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/cuda/arguments.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// Addresses are multiples of their elements' size.
ReduceArguments reduce_arguments(const Reduction& reduction, std::span<std::byte* const> results,
                                 std::span<const std::byte* const> operands, Count count);

/// For an exchange that copies so many bytes to all results.
ReduceArguments copy_arguments(std::span<std::byte* const> results, const std::byte* from, std::size_t bytes);

}  // namespace polyring
