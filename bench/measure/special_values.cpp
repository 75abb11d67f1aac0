#include "bench/measure/special_values.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "collectives/runtime/half.hpp"

namespace polyring {
namespace {

int fraction_bits(ElementKind kind) {
  switch (kind) {
    case ElementKind::float16:
      return 10;
    case ElementKind::bfloat16:
      return 7;
    case ElementKind::float64:
      return 52;
    default:
      return 23;
  }
}

ElementBits sign_of(ElementKind kind) { return ElementBits{1} << (8 * size_of(kind) - 1); }

std::int64_t integer_of(ElementKind kind, ElementBits bits) {
  return kind == ElementKind::int32 ? static_cast<std::int32_t>(bits) : static_cast<std::int64_t>(bits);
}

ElementBits bits_of_integer(ElementKind kind, std::int64_t value) {
  return kind == ElementKind::int32 ? static_cast<std::uint32_t>(value) : static_cast<ElementBits>(value);
}

/// −0 is less than +0, and a NaN is the result.
double least(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

double combined(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return least(a, b);
    case ReduceOp::max:
      return -least(-a, -b);
  }
  return 0;
}

/// Sums and products wrap around.
std::int64_t combined(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case ReduceOp::prod:
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a < b ? b : a;
  }
  return 0;
}

/// Divided once, as precisely as the kind is divided everywhere: in float for the kinds up to float.
double quotient(ElementKind kind, double sum, std::size_t divisor) {
  if (kind == ElementKind::float64) return sum / static_cast<double>(divisor);
  return static_cast<float>(sum) / static_cast<float>(divisor);
}

}  // namespace

std::vector<ElementBits> special_values(ElementKind kind) {
  const ElementBits sign = sign_of(kind);
  if (is_integer(kind)) {
    const ElementBits all = sign | (sign - 1);
    return {0, 1, all, 2, sign, sign + 1, sign - 1, sign - 2};
  }
  const ElementBits least_normal = ElementBits{1} << fraction_bits(kind);
  const ElementBits infinity = sign - least_normal;
  const ElementBits quiet = infinity | least_normal >> 1;
  std::vector<ElementBits> values;
  for (const ElementBits magnitude : {ElementBits{0}, ElementBits{1}, least_normal - 1, least_normal,
                                      infinity - 1, infinity, infinity | 1, quiet, quiet | 2, sign - 1}) {
    values.push_back(magnitude);
    values.push_back(sign | magnitude);
  }
  return values;
}

double value_of(ElementKind kind, ElementBits bits) {
  switch (kind) {
    case ElementKind::float32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case ElementKind::float64:
      return std::bit_cast<double>(bits);
    case ElementKind::float16:
      return to_float(Float16{static_cast<std::uint16_t>(bits)});
    case ElementKind::bfloat16:
      return to_float(Bfloat16{static_cast<std::uint16_t>(bits)});
    case ElementKind::int32:
    case ElementKind::int64:
      return static_cast<double>(integer_of(kind, bits));
  }
  return 0;
}

ElementBits bits_of(ElementKind kind, double value) {
  switch (kind) {
    case ElementKind::float32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case ElementKind::float64:
      return std::bit_cast<std::uint64_t>(value);
    case ElementKind::float16:
      return to_float16(static_cast<float>(value)).bits;
    case ElementKind::bfloat16:
      return to_bfloat16(static_cast<float>(value)).bits;
    case ElementKind::int32:
    case ElementKind::int64:
      return bits_of_integer(kind, static_cast<std::int64_t>(value));
  }
  return 0;
}

ElementBits reduced(ElementKind kind, ReduceOp op, std::span<const ElementBits> operands) {
  assert(!operands.empty());
  if (operands.size() == 1) return operands.front();
  if (is_integer(kind)) {
    std::int64_t result = integer_of(kind, operands.front());
    for (const ElementBits operand : operands.subspan(1))
      result = combined(op, result, integer_of(kind, operand));
    result = integer_of(kind, bits_of_integer(kind, result));
    if (op == ReduceOp::avg) result /= static_cast<std::int64_t>(operands.size());
    return bits_of_integer(kind, result);
  }
  double result = value_of(kind, operands.front());
  for (const ElementBits operand : operands.subspan(1))
    result = combined(op, result, value_of(kind, operand));
  if (op == ReduceOp::avg) result = quotient(kind, result, operands.size());
  return bits_of(kind, std::isnan(result) ? std::numeric_limits<double>::quiet_NaN() : result);
}

}  // namespace polyring
