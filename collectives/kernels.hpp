// Reduction kernels on host memory.
#pragma once

#include <cstddef>

#include "collectives/element.hpp"
#include "collectives/slice.hpp"

namespace polyring {

/// result[i] = left[i] op right[i] for `count` elements; avg adds. `result` may be `left` or `right` itself,
/// else the buffers are disjoint. float16 and bfloat16 are combined in float32 and rounded once. Integers
/// wrap around. Any alignment.
void combine_on_host(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
                     const std::byte* right, Count count);

/// data[i] /= divisor; integers are truncated towards 0.
void divide_on_host(ElementKind kind, std::byte* data, Count count, int divisor);

}  // namespace polyring
