// What a buffer holds and how two elements become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

enum class ElementKind { float32, float64, float16, bfloat16, int32, int64 };

/// avg is a sum that is divided by the number of ranks once, where an element is fully reduced. min and max
/// know −0 from +0, and make a NaN of a NaN and anything: see combine_many() in kernels.hpp.
enum class ReduceOp { sum, prod, min, max, avg };

inline constexpr ElementKind kElementKinds[] = {ElementKind::float32, ElementKind::float64,
                                                ElementKind::float16, ElementKind::bfloat16,
                                                ElementKind::int32,   ElementKind::int64};
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max,
                                          ReduceOp::avg};

/// Bytes of one element.
int size_of(ElementKind kind);
/// Of so many elements.
Bytes bytes_of(Count count, ElementKind kind);
bool is_integer(ElementKind kind);

/// What partial results must be kept as for the whole to be rounded once: float32 for the sums and products
/// of float16 and bfloat16, else the kind itself.
ElementKind exact_partial(ElementKind kind, ReduceOp op);

/// How operands of one kind become a result: in their order, computed in float32 where they or the result are
/// float16 or bfloat16, rounded once to `result`, the sum of an avg divided by `divisor` before.
struct Reduction {
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
  int divisor = 1;
  ElementKind result =
      kind;  // another than `kind` only with float16 or bfloat16 on one side and float32 on the other
};

/// nccl-tests' names (float, double, half, bfloat16, int32, int64); parsing also takes float32, float64 and
/// float16. Throws a usage Error that lists the names.
std::string_view to_text(ElementKind kind);
ElementKind parse_element_kind(std::string_view text);
/// nccl-tests' first, then the others.
std::vector<std::string> element_kind_names();

std::string_view to_text(ReduceOp op);
ReduceOp parse_reduce_op(std::string_view text);
std::vector<std::string> reduce_op_names();

}  // namespace polyring
