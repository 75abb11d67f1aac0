// The kernels of every instruction set against a plain loop, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "collectives/runtime/half.hpp"
#include "collectives/runtime/kernels.hpp"

namespace polyring {
namespace {

constexpr std::size_t kMost = 10007;  // elements: several blocks of every type
constexpr std::size_t kInputs = 17;
constexpr std::size_t kInputCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, kInputs};
constexpr std::size_t kLargeCounts[] = {4096, 5003, kMost};
constexpr std::size_t kGuard = 64;  // bytes on either side of a buffer that nobody may write
constexpr std::byte kUntouched{0xa5};

template <typename T>
constexpr ElementKind kKindOf = ElementKind::float32;
template <>
constexpr ElementKind kKindOf<double> = ElementKind::float64;
template <>
constexpr ElementKind kKindOf<Float16> = ElementKind::float16;
template <>
constexpr ElementKind kKindOf<Bfloat16> = ElementKind::bfloat16;
template <>
constexpr ElementKind kKindOf<std::int32_t> = ElementKind::int32;
template <>
constexpr ElementKind kKindOf<std::int64_t> = ElementKind::int64;

template <std::size_t kBytes>
using BitsOf = std::conditional_t<kBytes == 2, std::uint16_t,
                                  std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>;

/// Zeros, the least and the largest numbers, denormals, infinities and NaNs of every sort, by their bits.
template <typename T>
std::vector<T> special_values() {
  using Bits = BitsOf<sizeof(T)>;
  constexpr int kFraction = std::is_same_v<T, Float16> ? 10 : sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : 7;
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(T) - 1));
  constexpr auto kInfinity = static_cast<Bits>(kSign - (Bits{1} << kFraction));
  constexpr auto kQuiet = static_cast<Bits>(Bits{1} << (kFraction - 1));
  std::vector<T> values;
  for (const Bits magnitude :
       {Bits{0}, Bits{1}, static_cast<Bits>((Bits{1} << kFraction) - 1), static_cast<Bits>(kInfinity - 1),
        kInfinity, static_cast<Bits>(kInfinity | 1), static_cast<Bits>(kInfinity | kQuiet),
        static_cast<Bits>(kInfinity | kQuiet | 2), static_cast<Bits>(kSign - 1)}) {
    values.push_back(std::bit_cast<T>(magnitude));
    values.push_back(std::bit_cast<T>(static_cast<Bits>(kSign | magnitude)));
  }
  return values;
}

/// A third special values, a third any bits, a third numbers of like size, whose roundings show.
template <typename T>
std::vector<T> some_values(std::mt19937_64& random) {
  using Bits = BitsOf<sizeof(T)>;
  constexpr auto kLikeOne = static_cast<Bits>(Bits{0x3} << (8 * sizeof(T) - 4));
  const std::vector<T> special = special_values<T>();
  std::vector<T> values(kMost);
  for (T& value : values) {
    const std::uint64_t draw = random();
    const auto bits = static_cast<Bits>(random());
    const auto fraction = static_cast<Bits>(bits >> 4);
    value = draw % 3 == 0   ? special[draw / 3 % special.size()]
            : draw % 3 == 1 ? std::bit_cast<T>(bits)
                            : std::bit_cast<T>(static_cast<Bits>(kLikeOne | fraction));
  }
  return values;
}

float computed(Float16 value) { return to_float(value); }
float computed(Bfloat16 value) { return to_float(value); }
template <typename T>
T computed(T value) {
  return value;
}

template <typename T, typename Computed>
T stored(Computed value) {
  if constexpr (std::is_same_v<T, Float16>) return to_float16(value);
  if constexpr (std::is_same_v<T, Bfloat16>) return to_bfloat16(value);
  if constexpr (std::is_same_v<T, Computed>) return value;
}

/// The place of a number among all: of floats their bits, with the negative ones counted downwards, so that
/// −0 comes right before +0.
template <typename T>
std::int64_t place_of(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    using Bits = BitsOf<sizeof(T)>;
    const Bits magnitude = static_cast<Bits>(std::bit_cast<Bits>(value) << 1) >> 1;
    const auto place = static_cast<std::int64_t>(magnitude);
    return std::signbit(value) ? -1 - place : place;
  }
}

/// a op b by the book.
template <typename T>
T combined(ReduceOp op, T a, T b) {
  if (op == ReduceOp::min || op == ReduceOp::max) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    return (op == ReduceOp::min) == (place_of(a) < place_of(b)) ? a : b;
  }
  if constexpr (std::is_integral_v<T>) {
    const auto left = static_cast<std::make_unsigned_t<T>>(a);
    const auto right = static_cast<std::make_unsigned_t<T>>(b);
    return static_cast<T>(op == ReduceOp::prod ? left * right : left + right);
  } else {
    return op == ReduceOp::prod ? a * b : a + b;
  }
}

template <typename T, typename Result>
std::vector<Result> expected_of(ReduceOp op, const std::vector<std::vector<T>>& inputs,
                                std::size_t input_count, int divisor) {
  using Computed = decltype(computed(T{}));
  std::vector<Result> result;
  for (std::size_t i = 0; i < kMost; ++i) {
    Computed value = computed(inputs[0][i]);
    for (std::size_t k = 1; k < input_count; ++k) value = combined(op, value, computed(inputs[k][i]));
    if (op == ReduceOp::avg && divisor != 1) value /= static_cast<Computed>(divisor);
    if (value != value) value = std::numeric_limits<Computed>::quiet_NaN();
    result.push_back(stored<Result>(value));
  }
  return result;
}

/// A buffer somewhere in a cache line, between guards.
class Guarded {
 public:
  Guarded() : bytes_(2 * kGuard + 64 + kMost * 8) {}

  std::byte* place(std::size_t misalignment, std::size_t bytes) {
    std::fill_n(bytes_.begin(), static_cast<std::ptrdiff_t>(2 * kGuard + 64 + bytes), kUntouched);
    const std::size_t to_line = -reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64;
    begin_ = bytes_.data() + kGuard + (to_line + misalignment) % 64;
    end_ = begin_ + bytes;
    return begin_;
  }

  bool guards_are_whole() const {
    const auto untouched = [](std::byte byte) { return byte == kUntouched; };
    return std::all_of(begin_ - kGuard, begin_, untouched) && std::all_of(end_, end_ + kGuard, untouched);
  }

 private:
  std::vector<std::byte> bytes_;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

/// How buffers lie in their cache lines: each elsewhere, or all equally far from one, by whole elements.
enum class Places { anywhere, sharing_lines };

std::string name_of(const testing::TestParamInfo<Isa>& info) {
  std::string name(to_text(info.param));
  std::erase(name, '-');
  return name;
}

class Kernels : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!runs_here(GetParam())) GTEST_SKIP() << "skipped: no " << to_text(GetParam()) << " here";
  }

  /// The first `count` elements with this many buffers; which of these lie where, and which output is an
  /// input where it can be, changes with `count`.
  template <typename T, typename Result>
  void check(ReduceOp op, const std::vector<std::vector<T>>& values, std::size_t input_count,
             std::size_t output_count, std::size_t count, int divisor, Stores stores, Places places,
             const std::vector<Result>& expected) {
    const std::size_t bytes = count * sizeof(T);
    const bool sharing = places == Places::sharing_lines;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (std::size_t k = 0; k < input_count; ++k) {
      std::byte* const input = inputs_[k].place(sharing ? count % 3 * sizeof(T) : count * 5 + k * 13, bytes);
      std::memcpy(input, values[k].data(), bytes);
      inputs.push_back(input);
      const bool in_place = std::is_same_v<T, Result> && (k + count) % 5 == outputs.size();
      if (in_place && outputs.size() < output_count) outputs.push_back(input);
    }
    const std::size_t in_place = outputs.size();
    for (std::size_t k = in_place; k < output_count; ++k) {
      const std::size_t elsewhere = count / 2 * 3 + k * (1 + count % 32);
      const std::size_t misalignment = sharing ? count % 3 * sizeof(Result) : elsewhere;
      outputs.push_back(outputs_[k].place(misalignment, count * sizeof(Result)));
    }
    combine_many_with(GetParam(), {kKindOf<T>, op, divisor, kKindOf<Result>}, outputs, inputs,
                      static_cast<Count>(count), stores);
    const auto* const wanted = reinterpret_cast<const std::byte*>(expected.data());
    for (std::size_t k = 0; k < output_count; ++k) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * sizeof(Result);
        ASSERT_EQ(std::memcmp(outputs[k] + at, wanted + at, sizeof(Result)), 0)
            << to_text(kKindOf<T>) << " to " << to_text(kKindOf<Result>) << " " << to_text(op) << ", "
            << input_count << " inputs, output " << k << " of " << output_count << ", element " << i << " of "
            << count;
      }
    }
    for (std::size_t k = 0; k < input_count; ++k) {
      ASSERT_TRUE(inputs_[k].guards_are_whole()) << "input " << k;
      const bool written = std::find(outputs.begin(), outputs.end(), inputs[k]) != outputs.end();
      ASSERT_TRUE(written || std::memcmp(inputs[k], values[k].data(), bytes) == 0) << "input " << k;
    }
    for (std::size_t k = in_place; k < output_count; ++k) ASSERT_TRUE(outputs_[k].guards_are_whole());
  }

  template <typename T, typename Result = T>
  void check_all() {
    std::mt19937_64 random(7);
    std::vector<std::vector<T>> values;
    for (std::size_t k = 0; k < kInputs; ++k) values.push_back(some_values<T>(random));
    for (const ReduceOp op : kReduceOps) {
      for (const std::size_t inputs : kInputCounts) {
        const int divisor = static_cast<int>(inputs);
        const std::vector<Result> expected = expected_of<T, Result>(op, values, inputs, divisor);
        for (std::size_t count = 0; count <= 130; ++count) {
          const Stores stores = (count + inputs) % 2 == 0 ? Stores::cached : Stores::streaming;
          const Places places = count / 4 % 2 == 0 ? Places::anywhere : Places::sharing_lines;
          check(op, values, inputs, 1 + (count / 2 + inputs) % 4, count, divisor, stores, places, expected);
          if (HasFatalFailure()) return;
        }
        for (const std::size_t count : kLargeCounts) {
          for (const Stores stores : {Stores::cached, Stores::streaming}) {
            for (const Places places : {Places::anywhere, Places::sharing_lines}) {
              check(op, values, inputs, 1 + count % 4, count, divisor, stores, places, expected);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }

  std::vector<Guarded> inputs_{kInputs};
  std::vector<Guarded> outputs_{4};
};

TEST_P(Kernels, CombineFloat32) { check_all<float>(); }
TEST_P(Kernels, CombineFloat64) { check_all<double>(); }
TEST_P(Kernels, CombineFloat16) { check_all<Float16>(); }
TEST_P(Kernels, CombineBfloat16) { check_all<Bfloat16>(); }
TEST_P(Kernels, CombineFloat16IntoFloat32) { check_all<Float16, float>(); }
TEST_P(Kernels, CombineBfloat16IntoFloat32) { check_all<Bfloat16, float>(); }
TEST_P(Kernels, CombineFloat32IntoFloat16) { check_all<float, Float16>(); }
TEST_P(Kernels, CombineFloat32IntoBfloat16) { check_all<float, Bfloat16>(); }
TEST_P(Kernels, CombineInt32) { check_all<std::int32_t>(); }
TEST_P(Kernels, CombineInt64) { check_all<std::int64_t>(); }

/// The bits of the one NaN that any operation makes, by the formats: quiet, positive, no payload.
template <typename T>
constexpr BitsOf<sizeof(T)> kOneNan = 0x7fc00000;
template <>
constexpr std::uint64_t kOneNan<double> = 0x7ff8000000000000;
template <>
constexpr std::uint16_t kOneNan<Float16> = 0x7e00;
template <>
constexpr std::uint16_t kOneNan<Bfloat16> = 0x7fc0;

/// All special values against all, as many of a kind side by side as the widest vector has.
template <typename T>
void check_special_pairs(Isa isa, ReduceOp op) {
  using Bits = BitsOf<sizeof(T)>;
  constexpr std::size_t kWidth = 64;
  const auto combine = [&](T a, T b) {
    const std::vector<T> left(kWidth, a);
    const std::vector<T> right(kWidth, b);
    std::vector<T> result(kWidth);
    std::byte* const outputs[] = {reinterpret_cast<std::byte*>(result.data())};
    const std::byte* const inputs[] = {reinterpret_cast<const std::byte*>(left.data()),
                                       reinterpret_cast<const std::byte*>(right.data())};
    combine_many_with(isa, {kKindOf<T>, op}, outputs, inputs, kWidth, Stores::cached);
    return std::bit_cast<Bits>(result[kWidth / 2]);
  };
  const bool picks = op == ReduceOp::min || op == ReduceOp::max;
  for (const T a : special_values<T>()) {
    for (const T b : special_values<T>()) {
      const Bits made = combine(a, b);
      const auto x = computed(a);
      const auto y = computed(b);
      EXPECT_EQ(made, combine(b, a)) << to_text(op) << " of " << x << " and " << y << " in either order";
      const auto result = computed(std::bit_cast<T>(made));
      if (x != x || y != y || result != result) {
        EXPECT_EQ(made, kOneNan<T>) << to_text(op) << " of " << x << " and " << y;
        continue;
      }
      if (!picks) continue;
      const bool first = (op == ReduceOp::min) == (place_of(x) < place_of(y));
      EXPECT_EQ(made, std::bit_cast<Bits>(first ? a : b)) << to_text(op) << " of " << x << " and " << y;
    }
  }
}

TEST_P(Kernels, MakeOneResultOfSpecialValuesInEitherOrder) {
  for (const ReduceOp op : kReduceOps) {
    check_special_pairs<float>(GetParam(), op);
    check_special_pairs<double>(GetParam(), op);
    check_special_pairs<Float16>(GetParam(), op);
    check_special_pairs<Bfloat16>(GetParam(), op);
  }
}

/// The products of all float16 with one another's neighbours: every rounding, subnormals included.
TEST_P(Kernels, RoundFloat16AsTheDefinitionSays) {
  std::vector<Float16> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  for (const float factor : {1.0f, 0.33325195f, 1.0009766f, 6.1035156e-5f, 5.9604645e-8f, 1023.5f}) {
    const std::vector<Float16> factors(all.size(), to_float16(factor));
    std::vector<Float16> result(all.size());
    std::byte* const outputs[] = {reinterpret_cast<std::byte*>(result.data())};
    const std::byte* const inputs[] = {reinterpret_cast<const std::byte*>(all.data()),
                                       reinterpret_cast<const std::byte*>(factors.data())};
    combine_many_with(GetParam(), {ElementKind::float16, ReduceOp::prod}, outputs, inputs, 65536,
                      Stores::cached);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float product = to_float(all[i]) * to_float(factors[i]);
      const float expected = product == product ? product : std::numeric_limits<float>::quiet_NaN();
      ASSERT_EQ(result[i].bits, to_float16(expected).bits) << i << " times " << factor;
    }
  }
}

TEST_P(Kernels, CopyWhatTheyAreGiven) {
  std::mt19937_64 random(7);
  const std::vector<std::int64_t> values = some_values<std::int64_t>(random);
  std::vector<std::size_t> sizes{4096, 50001};
  for (std::size_t bytes = 0; bytes <= 300; ++bytes) sizes.push_back(bytes);
  for (const std::size_t bytes : sizes) {
    for (const Stores stores : {Stores::cached, Stores::streaming}) {
      std::byte* const from = inputs_[0].place(bytes * 7, bytes);
      std::memcpy(from, values.data(), bytes);
      std::byte* const to = outputs_[0].place(bytes / 3, bytes);
      copy_on_host_with(GetParam(), to, from, bytes, stores);
      ASSERT_EQ(std::memcmp(to, values.data(), bytes), 0) << bytes;
      ASSERT_TRUE(outputs_[0].guards_are_whole()) << bytes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Kernels, testing::ValuesIn(kIsas), name_of);

TEST(BestIsa, RunsHereAndNoBetterOneDoes) {
  EXPECT_TRUE(runs_here(best_isa()));
  for (const Isa isa : kIsas) EXPECT_TRUE(isa <= best_isa() || !runs_here(isa));
}

}  // namespace
}  // namespace polyring
