#include "collectives/kernels.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "collectives/half.hpp"

namespace polyring {
namespace {

// What an element is stored as, and what it is combined in. Integers are combined unsigned, for which
// overflow is defined; multiplication and addition give the same bits.
template <typename T>
struct Compute {
  using type = T;
};
template <>
struct Compute<Float16> {
  using type = float;
};
template <>
struct Compute<Bfloat16> {
  using type = float;
};

template <typename T>
typename Compute<T>::type widen(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <typename T>
T narrow(typename Compute<T>::type value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    return to_bfloat16(value);
  } else {
    return value;
  }
}

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};

struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};

struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

struct Greatest {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

// memcpy because a byte buffer may have any alignment; compilers make it a plain vector load.
template <typename T>
T load(const std::byte* from, Count i) {
  T value;
  std::memcpy(&value, from + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, Count i, T value) {
  std::memcpy(to + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

template <typename T, typename Op>
void combine_all(std::byte* result, const std::byte* left, const std::byte* right, Count count) {
#ifndef __clang__  // clang checks at run time whether the buffers overlap
#pragma GCC ivdep
#endif
  for (Count i = 0; i < count; ++i) {
    store<T>(result, i, narrow<T>(Op{}(widen(load<T>(left, i)), widen(load<T>(right, i)))));
  }
}

template <typename T>
void combine_as(ReduceOp op, std::byte* result, const std::byte* left, const std::byte* right, Count count) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return combine_all<T, Add>(result, left, right, count);
    case ReduceOp::prod:
      return combine_all<T, Multiply>(result, left, right, count);
    case ReduceOp::min:
      return combine_all<T, Least>(result, left, right, count);
    case ReduceOp::max:
      return combine_all<T, Greatest>(result, left, right, count);
  }
}

template <typename T>
void divide_as(std::byte* data, Count count, int divisor) {
  const auto by = static_cast<typename Compute<T>::type>(divisor);
  for (Count i = 0; i < count; ++i) store<T>(data, i, narrow<T>(widen(load<T>(data, i)) / by));
}

/// Calls `use` with a value of the type that the kind is stored as.
template <typename Use>
void with_type(ElementKind kind, Use use) {
  switch (kind) {
    case ElementKind::float32:
      return use(float{});
    case ElementKind::float64:
      return use(double{});
    case ElementKind::float16:
      return use(Float16{});
    case ElementKind::bfloat16:
      return use(Bfloat16{});
    case ElementKind::int32:
      return use(std::int32_t{});
    case ElementKind::int64:
      return use(std::int64_t{});
  }
}

}  // namespace

void combine_on_host(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
                     const std::byte* right, Count count) {
  with_type(kind, [&](auto element) { combine_as<decltype(element)>(op, result, left, right, count); });
}

void divide_on_host(ElementKind kind, std::byte* data, Count count, int divisor) {
  assert(divisor > 0);
  with_type(kind, [&](auto element) { divide_as<decltype(element)>(data, count, divisor); });
}

}  // namespace polyring
