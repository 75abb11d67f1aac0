// float16 and bfloat16 as 16 bits, converted to and from float32. Written out because clang 14 has no
// _Float16 on x86-64 without AVX-512.
#pragma once

#include <cstdint>

#include "collectives/runtime/host_device.hpp"

namespace polyring {

struct Float16 {
  std::uint16_t bits = 0;
};

struct Bfloat16 {
  std::uint16_t bits = 0;
};

// The conversions, of one number or of a vector of them: `Bits` is std::uint32_t or a vector of it, with a
// half in the low 16 bits of each, and `Floats` what corresponds to it. Always inlined, so that no copy for a
// wider instruction set is shared with code for a narrower one. NaNs keep their sign and the head of their
// payload and become quiet, as the conversions of the hardware have it.
namespace half {

template <typename Floats, typename Bits>
[[gnu::always_inline]] POLYRING_HD inline Floats from_bfloat16(Bits value) {
  return __builtin_bit_cast(Floats, value << 16);
}

/// Rounds to nearest, ties to even; of NaNs it takes only those whose payload is in the upper 16 bits.
template <typename Bits, typename Floats>
[[gnu::always_inline]] POLYRING_HD inline Bits round_to_bfloat16(Floats value) {
  const Bits bits = __builtin_bit_cast(Bits, value);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

template <typename Bits, typename Floats>
[[gnu::always_inline]] POLYRING_HD inline Bits to_bfloat16(Floats value) {
  const Bits bits = __builtin_bit_cast(Bits, value);
  const Bits quiet = (bits | 0x400000u) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? quiet : round_to_bfloat16<Bits>(value);
}

template <typename Floats, typename Bits>
[[gnu::always_inline]] POLYRING_HD inline Floats from_float16(Bits value) {
  // Shifted into place the exponent is 112 too small, which a multiplication mends for subnormals as well.
  const Bits magnitude = (value & 0x7fffu) << 13;
  const Bits scaled = __builtin_bit_cast(Bits, __builtin_bit_cast(Floats, magnitude) * 0x1p112f);
  const Bits special = magnitude | 0x7f800000u;
  const Bits quiet = magnitude > 0x0f800000u ? special | 0x400000u : special;
  const Bits bits = magnitude >= 0x0f800000u ? quiet : scaled;
  return __builtin_bit_cast(Floats, bits | (value & 0x8000u) << 16);
}

/// Rounds to nearest, ties to even; above 65504 to infinity.
template <typename Bits, typename Floats>
[[gnu::always_inline]] POLYRING_HD inline Bits to_float16(Floats value) {
  const Bits bits = __builtin_bit_cast(Bits, value);
  const Bits magnitude = bits & 0x7fffffffu;
  // Below 2^-14 a float16 is subnormal: adding 0.5 leaves its 10 bits, rounded by the hardware, at the
  // bottom.
  const Bits subnormal = __builtin_bit_cast(Bits, __builtin_bit_cast(Floats, magnitude) + 0.5f) - 0x3f000000u;
  const Bits normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const Bits infinity = Bits{} + 0x7c00u;
  const Bits finite = magnitude < (113u << 23) ? subnormal : normal;
  const Bits ordered = magnitude >= 0x477ff000u ? infinity : finite;  // 65520, halfway to the next, and above
  const Bits result = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : ordered;
  return (bits >> 16 & 0x8000u) | result;
}

}  // namespace half

inline float to_float(Bfloat16 value) { return half::from_bfloat16<float>(std::uint32_t{value.bits}); }
inline float to_float(Float16 value) { return half::from_float16<float>(std::uint32_t{value.bits}); }

/// Rounds to nearest, ties to even; NaNs stay NaNs.
inline Bfloat16 to_bfloat16(float value) {
  return {static_cast<std::uint16_t>(half::to_bfloat16<std::uint32_t>(value))};
}

/// Rounds to nearest, ties to even; above 65504 to infinity; NaNs stay NaNs.
inline Float16 to_float16(float value) {
  return {static_cast<std::uint16_t>(half::to_float16<std::uint32_t>(value))};
}

}  // namespace polyring
