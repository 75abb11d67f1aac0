// The kinds of elements and the operations on them, one element at a time, with the same bits as the kernels
// of the host (collectives/runtime/kernels/packs.hpp). kernel_list.hpp forms their names: the kinds are
// called as in ElementKind, the operations as in ReduceOp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/runtime/half.hpp"
#include "collectives/runtime/host_device.hpp"

namespace polyring::element {

/// What an element is stored as, what it is combined in, and the way there and back. What is narrowed is no
/// NaN except the one that rounded_result() makes.
template <typename T>
struct SameType {
  using Stored = T;
  using Computed = T;
  POLYRING_HD static T widen(T value) { return value; }
  POLYRING_HD static T narrow(T value) { return value; }
};

struct float32 : SameType<float> {};
struct float64 : SameType<double> {};
struct int32 : SameType<std::int32_t> {};
struct int64 : SameType<std::int64_t> {};

struct float16 {
  using Stored = std::uint16_t;
  using Computed = float;
#if defined(__CUDA_ARCH__)
  // The GPU's own conversions round the same way, in one instruction. Of NaNs they make another one.
  __device__ static float widen(Stored value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value));
    return result;
  }
  __device__ static Stored narrow(float value) {
    Stored result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
    return value == value ? result : Stored{0x7e00};
  }
#else
  POLYRING_HD static float widen(Stored value) { return half::from_float16<float>(std::uint32_t{value}); }
  POLYRING_HD static Stored narrow(float value) {
    return static_cast<Stored>(half::to_float16<std::uint32_t>(value));
  }
#endif
};

struct bfloat16 {
  using Stored = std::uint16_t;
  using Computed = float;
  POLYRING_HD static float widen(Stored value) { return half::from_bfloat16<float>(std::uint32_t{value}); }
  POLYRING_HD static Stored narrow(float value) {
    return static_cast<Stored>(half::round_to_bfloat16<std::uint32_t>(value));
  }
};

template <typename T>
inline constexpr bool kFloating = static_cast<T>(0.5) != T{};

template <typename T>
struct BitsOf;
template <>
struct BitsOf<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct BitsOf<std::int64_t> {
  using type = std::uint64_t;
};
template <>
struct BitsOf<float> {
  using type = std::uint32_t;
};
template <>
struct BitsOf<double> {
  using type = std::uint64_t;
};

template <typename T>
POLYRING_HD inline typename BitsOf<T>::type bits(T value) {
  return __builtin_bit_cast(typename BitsOf<T>::type, value);
}

}  // namespace polyring::element

namespace polyring::operation {

/// An operation combines operands by apply(). Each operand passes through enter() before, and the result
/// through leave() afterwards.
struct Direct {
  template <typename T>
  POLYRING_HD static T enter(T operand) {
    return operand;
  }
  template <typename T>
  POLYRING_HD static T leave(T result) {
    return result;
  }
};

/// Also for avg, which divides afterwards.
struct sum : Direct {
  static constexpr bool kDivides = true;
  template <typename T>
  POLYRING_HD static T apply(T a, T b) {
    if constexpr (element::kFloating<T>)
      return a + b;
    else
      return static_cast<T>(element::bits(a) + element::bits(b));
  }
};

struct prod : Direct {
  static constexpr bool kDivides = false;
  template <typename T>
  POLYRING_HD static T apply(T a, T b) {
    if constexpr (element::kFloating<T>)
      return a * b;
    else
      return static_cast<T>(element::bits(a) * element::bits(b));
  }
};

struct min : Direct {
  static constexpr bool kDivides = false;
  /// Of floats the minimum in either order of the operands, joined bit by bit. The two differ only for zeros
  /// of both signs, which together make −0, and where an operand is a NaN. One of the two is then that NaN,
  /// and stays a NaN whatever bits are joined to it.
  template <typename T>
  POLYRING_HD static T apply(T a, T b) {
    const T least = b < a ? b : a;
    if constexpr (element::kFloating<T>) {
      const T other_way = a < b ? a : b;
      return __builtin_bit_cast(T, element::bits(least) | element::bits(other_way));
    } else {
      return least;
    }
  }
};

/// Of floats, the least with all signs changed.
struct max {
  static constexpr bool kDivides = false;
  template <typename T>
  POLYRING_HD static T enter(T operand) {
    return with_other_sign(operand);
  }
  template <typename T>
  POLYRING_HD static T apply(T a, T b) {
    if constexpr (element::kFloating<T>)
      return min::apply(a, b);
    else
      return a < b ? b : a;
  }
  template <typename T>
  POLYRING_HD static T leave(T result) {
    return with_other_sign(result);
  }

 private:
  template <typename T>
  POLYRING_HD static T with_other_sign(T value) {
    if constexpr (element::kFloating<T>) {
      using Bits = typename element::BitsOf<T>::type;
      return __builtin_bit_cast(T, element::bits(value) ^ Bits{1} << (8 * sizeof(T) - 1));
    } else {
      return value;
    }
  }
};

/// What avg does to the sum. The quotient by a power of two is the product with its reciprocal, to the bit.
template <typename T>
class Divisor {
 public:
  POLYRING_HD explicit Divisor(std::int32_t divisor) : by_(static_cast<T>(divisor)) {
    if (divisor == 1) return;
    const bool exact = element::kFloating<T> && (divisor & (divisor - 1)) == 0;
    how_ = exact ? How::reciprocal : How::quotient;
    if (exact) by_ = static_cast<T>(T{1} / by_);
  }

  POLYRING_HD T quotient_of(T value) const {
    if (how_ == How::none) return value;
    return how_ == How::reciprocal ? value * by_ : value / by_;
  }

 private:
  enum class How { none, reciprocal, quotient };

  How how_ = How::none;
  T by_;
};

/// A result before it is rounded. Which of two NaNs an operation yields depends on the order of its operands,
/// so there is one for all.
template <typename Operation, typename T>
POLYRING_HD inline T whole_result(T value, const Divisor<T>& divisor) {
  T result = Operation::template leave<T>(value);
  if constexpr (Operation::kDivides) result = divisor.quotient_of(result);
  if constexpr (element::kFloating<T>) {
    result = result == result ? result : static_cast<T>(__builtin_nan(""));
  }
  return result;
}

}  // namespace polyring::operation
