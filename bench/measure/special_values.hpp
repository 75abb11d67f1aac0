// Elements by their bits: the values on which reductions tend to disagree, and the right result of any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/schedule/element.hpp"

namespace polyring {

/// The bits of one element of a kind, in the low size_of(kind) bytes.
using ElementBits = std::uint64_t;

/// Of floating point, with both signs: 0, the least and the largest denormal, the least normal and the
/// largest finite number, infinity, and four NaNs: signalling, quiet, quiet with a payload, and with all bits
/// set. Of integers: 0, 1, −1, 2, and the two least and the two largest.
std::vector<ElementBits> special_values(ElementKind kind);

/// Exact for float16, bfloat16, float and double; integers only up to 2^53.
double value_of(ElementKind kind, ElementBits bits);

/// The nearest element: floats are rounded to even, integers truncated towards 0.
ElementBits bits_of(ElementKind kind, double value);

/// What combine_many() of kernels.hpp makes of the operands, one after the other, in a plain loop that shares
/// nothing with it. Floats are combined in double: for more than two operands that is right only if no
/// partial result needs to be rounded. One operand alone is the result, bit by bit.
ElementBits reduced(ElementKind kind, ReduceOp op, std::span<const ElementBits> operands);

}  // namespace polyring
