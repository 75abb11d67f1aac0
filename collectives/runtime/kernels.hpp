// Reduction kernels on host memory. They use the widest vectors that the processor has; the results have the
// same bits with all of them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// How a kernel writes: `streaming` past the caches, for results that are larger than these or that nobody
/// here reads soon.
enum class Stores { cached, streaming };

/// What a kernel is compiled for: 16-byte vectors that every processor has or can emulate, AVX2 with F16C, or
/// the AVX-512 of Ice Lake and Zen 4 and later.
enum class Isa { portable, avx2, avx512 };

inline constexpr Isa kIsas[] = {Isa::portable, Isa::avx2, Isa::avx512};

std::string_view to_text(Isa isa);

/// Whether this program was built with it and this processor runs it.
bool runs_here(Isa isa);

/// The best that runs here: what all functions without a parameter `isa` use.
Isa best_isa();

/// outputs[k][i] = inputs[0][i] op inputs[1][i] op … for `count` elements and all k, from left to right, in
/// one pass over the memory, as `reduction` says: float16 and bfloat16 are combined in float32 and rounded
/// once, to nearest even; avg adds and divides by its divisor before that rounding, and the other operations
/// ignore it. Integers wrap around, and their quotient is truncated towards 0. Every NaN that results is the
/// same one: quiet, positive, without a payload. min and max are those of a total order, so that the order of
/// the inputs does not matter: −0 is less than +0, and where an input is a NaN, whatever its sign and
/// payload, that one NaN results. At least one input; any alignment; an output of the inputs' kind may be one
/// of them, else the buffers are disjoint.
void combine_many(const Reduction& reduction, std::span<std::byte* const> outputs,
                  std::span<const std::byte* const> inputs, Count count, Stores stores);

/// The same with kernels of one's choice, which must run here.
void combine_many_with(Isa isa, const Reduction& reduction, std::span<std::byte* const> outputs,
                       std::span<const std::byte* const> inputs, Count count, Stores stores);

/// combine_many of two inputs into one output, without a division.
void combine_on_host(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
                     const std::byte* right, Count count);

/// data[i] /= divisor; integers are truncated towards 0.
void divide_on_host(ElementKind kind, std::byte* data, Count count, int divisor);

/// Copies between disjoint buffers of any alignment.
void copy_on_host(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores);
void copy_on_host_with(Isa isa, std::byte* to, const std::byte* from, std::size_t bytes, Stores stores);

}  // namespace polyring
