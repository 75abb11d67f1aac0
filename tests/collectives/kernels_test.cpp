#include "collectives/runtime/kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "collectives/runtime/half.hpp"

namespace polyring {
namespace {

/// A float16 by its definition: sign, exponent, fraction.
double value_of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Float16, EveryValueIsReadByItsDefinition) {
  for (int bits = 0; bits < 65536; ++bits) {
    const double expected = value_of_half(static_cast<std::uint16_t>(bits));
    const double got = to_float(Float16{static_cast<std::uint16_t>(bits)});
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected)) << bits;
    }
  }
}

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(half))) {
      EXPECT_TRUE(std::isnan(to_float(to_float16(to_float(half)))));
    } else {
      EXPECT_EQ(to_float16(to_float(half)).bits, bits);
    }
  }
}

/// NaNs keep their sign and the head of their payload, and become quiet, as the processors' conversions have
/// it.
TEST(Float16, NansKeepWhatFits) {
  for (std::uint32_t payload = 1; payload < 1024; ++payload) {
    for (const std::uint32_t sign : {0u, 1u}) {
      const auto half = static_cast<std::uint16_t>(sign << 15 | 0x7c00u | payload);
      const std::uint32_t read = std::bit_cast<std::uint32_t>(to_float(Float16{half}));
      EXPECT_EQ(read, sign << 31 | 0x7fc00000u | payload << 13) << payload;
      // What is below the head is lost, were it all of the payload.
      const auto loud = std::bit_cast<float>(sign << 31 | 0x7f800000u | payload << 13 | 1u);
      EXPECT_EQ(to_float16(loud).bits, half | 0x200u) << payload;
    }
  }
  EXPECT_EQ(to_float16(std::bit_cast<float>(0x7f800001u)).bits, 0x7e00);
}

/// Between two neighbours everything rounds to the nearer one, and the midpoint to the even one.
TEST(Float16, RoundsToNearestEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const auto below = static_cast<float>(value_of_half(static_cast<std::uint16_t>(bits)));
    const auto above = static_cast<float>(value_of_half(static_cast<std::uint16_t>(bits + 1)));
    const float middle = below + (above - below) / 2;
    EXPECT_EQ(to_float16(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(to_float16(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    EXPECT_EQ(to_float16(std::nextafter(middle, above)).bits, bits + 1) << bits;
    EXPECT_EQ(to_float16(-middle).bits, to_float16(middle).bits | 0x8000) << bits;
  }
  EXPECT_EQ(to_float16(65519.99f).bits, 0x7bff);
  EXPECT_EQ(to_float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_float16(1e30f).bits, 0x7c00);
}

TEST(Bfloat16, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const float below = to_float(Bfloat16{static_cast<std::uint16_t>(bits)});
    const float middle = std::bit_cast<float>(bits << 16 | 0x8000u);
    EXPECT_EQ(to_bfloat16(below).bits, bits);
    EXPECT_EQ(to_bfloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    EXPECT_EQ(to_bfloat16(std::nextafter(middle, 0.0f)).bits, bits) << bits;
  }
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(std::numeric_limits<float>::infinity()))));
}

TEST(Bfloat16, NansKeepWhatFits) {
  for (std::uint32_t payload = 1; payload < 128; ++payload) {
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const std::uint32_t bits = sign | 0x7f80u | payload;
      EXPECT_EQ(std::bit_cast<std::uint32_t>(to_float(Bfloat16{static_cast<std::uint16_t>(bits)})),
                bits << 16);
      EXPECT_EQ(to_bfloat16(std::bit_cast<float>(bits << 16 | 0xffffu)).bits, bits | 0x40u) << payload;
    }
  }
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0xff800001u)).bits, 0xffc0);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

template <typename T>
std::vector<T> combine(ElementKind kind, ReduceOp op, const std::vector<T>& left,
                       const std::vector<T>& right) {
  // One byte off, so that no alignment is relied on.
  std::vector<std::byte> storage(left.size() * sizeof(T) + 1);
  std::memcpy(storage.data() + 1, left.data(), left.size() * sizeof(T));
  combine_on_host(kind, op, storage.data() + 1, storage.data() + 1,
                  reinterpret_cast<const std::byte*>(right.data()), static_cast<Count>(left.size()));
  std::vector<T> result(left.size());
  std::memcpy(result.data(), storage.data() + 1, left.size() * sizeof(T));
  return result;
}

TEST(Combine, DoesWhatTheOperationsName) {
  const std::vector<float> a{1, -2, 3.5f, 0};
  const std::vector<float> b{4, 5, -1, 0.25f};
  EXPECT_EQ(combine(ElementKind::float32, ReduceOp::sum, a, b), std::vector<float>({5, 3, 2.5f, 0.25f}));
  EXPECT_EQ(combine(ElementKind::float32, ReduceOp::avg, a, b), std::vector<float>({5, 3, 2.5f, 0.25f}));
  EXPECT_EQ(combine(ElementKind::float32, ReduceOp::prod, a, b), std::vector<float>({4, -10, -3.5f, 0}));
  EXPECT_EQ(combine(ElementKind::float32, ReduceOp::min, a, b), std::vector<float>({1, -2, -1, 0}));
  EXPECT_EQ(combine(ElementKind::float32, ReduceOp::max, a, b), std::vector<float>({4, 5, 3.5f, 0.25f}));
  EXPECT_EQ(combine<double>(ElementKind::float64, ReduceOp::sum, {1e300}, {1e300}),
            std::vector<double>({2e300}));
}

TEST(Combine, IntegersWrapAround) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(combine<std::int32_t>(ElementKind::int32, ReduceOp::sum, {kMost}, {1}),
            std::vector<std::int32_t>({std::numeric_limits<std::int32_t>::min()}));
  EXPECT_EQ(combine<std::int64_t>(ElementKind::int64, ReduceOp::prod, {std::int64_t{1} << 40}, {-3}),
            std::vector<std::int64_t>({-3 * (std::int64_t{1} << 40)}));
}

TEST(Combine, HalfIsCombinedInFloatAndRoundedOnce) {
  // 2048 + 1.5 rounds to 2050 from the exact sum 2049.5; from 1.5 rounded to 2 first it would be 2050 as
  // well, so a product: 181 · 181 = 32761, which lies between 32752 and 32768 and is nearer to the second.
  const auto product =
      combine<Float16>(ElementKind::float16, ReduceOp::prod, {to_float16(181)}, {to_float16(181)});
  EXPECT_EQ(to_float(product.front()), 32768);
  const auto sum =
      combine<Bfloat16>(ElementKind::bfloat16, ReduceOp::sum, {to_bfloat16(256)}, {to_bfloat16(3)});
  EXPECT_EQ(to_float(sum.front()), 260);  // 259 is a tie between 258 and 260: to even
}

TEST(Divide, RoundsOnceAndTruncatesIntegers) {
  std::vector<std::int32_t> ints{7, -7, 0};
  divide_on_host(ElementKind::int32, reinterpret_cast<std::byte*>(ints.data()), 3, 2);
  EXPECT_EQ(ints, std::vector<std::int32_t>({3, -3, 0}));
  std::vector<float> floats{1, 10};
  divide_on_host(ElementKind::float32, reinterpret_cast<std::byte*>(floats.data()), 2, 3);
  EXPECT_EQ(floats, std::vector<float>({1.0f / 3, 10.0f / 3}));
}

}  // namespace
}  // namespace polyring
