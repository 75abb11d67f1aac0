// float16 and bfloat16 as 16 bits, converted to and from float32. Written out because clang 14 has no
// _Float16 on x86-64 without AVX-512; both conversions vectorise.
#pragma once

#include <bit>
#include <cstdint>

namespace polyring {

struct Float16 {
  std::uint16_t bits = 0;
};

struct Bfloat16 {
  std::uint16_t bits = 0;
};

inline float to_float(Bfloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

inline float to_float(Float16 value) {
  // Shifted into place the exponent is 112 too small, which a multiplication mends for subnormals as well.
  const std::uint32_t magnitude = (value.bits & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude | 0x7f800000u;  // infinities and NaNs keep their payload
  const std::uint32_t bits =
      (value.bits & 0x7c00u) == 0x7c00u ? special : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | (value.bits & 0x8000u) << 16);
}

/// Rounds to nearest, ties to even; NaNs stay NaNs.
inline Bfloat16 to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return {static_cast<std::uint16_t>((nan ? bits | 0x400000u : rounded) >> 16)};
}

/// Rounds to nearest, ties to even; above 65504 to infinity; NaNs stay NaNs.
inline Float16 to_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 a float16 is subnormal: adding 0.5 leaves its 10 bits, rounded by the hardware, at the
  // bottom.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                                  std::bit_cast<std::uint32_t>(0.5f);
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  if (magnitude >= 0x477ff000u) result = 0x7c00u;  // 65520, halfway to the next, and all above
  if (magnitude > 0x7f800000u) result = 0x7e00u;
  return {static_cast<std::uint16_t>(sign | result)};
}

}  // namespace polyring
