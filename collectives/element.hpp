// What a buffer holds and how two elements become one.
#pragma once

#include <string>
#include <string_view>

namespace polyring {

enum class ElementKind { float32, float64, float16, bfloat16, int32, int64 };

/// avg is a sum that is divided by the number of ranks once, where an element is fully reduced.
enum class ReduceOp { sum, prod, min, max, avg };

inline constexpr ElementKind kElementKinds[] = {ElementKind::float32, ElementKind::float64,
                                                ElementKind::float16, ElementKind::bfloat16,
                                                ElementKind::int32,   ElementKind::int64};
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max,
                                          ReduceOp::avg};

/// Bytes of one element.
int size_of(ElementKind kind);
bool is_integer(ElementKind kind);

/// nccl-tests' names (float, double, half, bfloat16, int32, int64); parsing also takes float32, float64 and
/// float16. Throws a usage Error that lists the names.
std::string_view to_text(ElementKind kind);
ElementKind parse_element_kind(std::string_view text);

std::string_view to_text(ReduceOp op);
ReduceOp parse_reduce_op(std::string_view text);

}  // namespace polyring
