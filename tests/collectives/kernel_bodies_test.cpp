// The bodies of the GPU kernels, as the host compiles them, against the kernels of the host, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench/measure/special_values.hpp"
#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/kernel_table.hpp"
#include "collectives/cuda/make_arguments.hpp"
#include "collectives/runtime/kernels.hpp"

namespace polyring {
namespace {

constexpr std::size_t kMost = 1000;  // elements
constexpr std::size_t kCounts[] = {0, 1, 2, 3, 15, 16, 17, kMost};
constexpr std::size_t kOperandCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 17};
constexpr std::size_t kMostOfOperands = 17;
constexpr std::size_t kMostOfResults = 9;
constexpr std::size_t kGuard = 64;  // bytes on either side of a buffer that nobody may write
constexpr std::byte kUntouched{0xa5};
constexpr LaunchShape kShapes[] = {{1, 1}, {3, 4}, {1, 32}, {2, 7}, {5, 64}};

struct Pair {
  ElementKind from;
  ElementKind to;
};

std::string name_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::float32:
      return "float32";
    case ElementKind::float64:
      return "float64";
    case ElementKind::float16:
      return "float16";
    case ElementKind::bfloat16:
      return "bfloat16";
    case ElementKind::int32:
      return "int32";
    case ElementKind::int64:
      return "int64";
  }
  return "";
}

std::string name_of(const testing::TestParamInfo<Pair>& info) {
  return name_of(info.param.from) + "_to_" + name_of(info.param.to);
}

const HostKernel& kernel(const std::string& name) {
  const HostKernel* const found = find_host_kernel("polyring_" + name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

const HostKernel& kernel_of(const Reduction& reduction) {
  const ReduceOp op = reduction.op == ReduceOp::avg ? ReduceOp::sum : reduction.op;
  return kernel("reduce_" + std::string(to_text(op)) + "_" + name_of(reduction.kind) + "_" +
                name_of(reduction.result));
}

/// A buffer at some distance from a vector's beginning, between guards.
class Buffer {
 public:
  Buffer() : bytes_(2 * kGuard + 32 + kMost * 8) {}

  std::byte* place(std::size_t misalignment, std::size_t size) {
    std::fill(bytes_.begin(), bytes_.end(), kUntouched);
    const std::size_t to_vector = -reinterpret_cast<std::uintptr_t>(bytes_.data()) % 16;
    begin_ = bytes_.data() + kGuard + to_vector + misalignment % 16;
    end_ = begin_ + size;
    return begin_;
  }

  std::byte* begin() const { return begin_; }
  bool guards_are_whole() const {
    const auto untouched = [](std::byte byte) { return byte == kUntouched; };
    return std::all_of(bytes_.data(), static_cast<const std::byte*>(begin_), untouched) &&
           std::all_of(static_cast<const std::byte*>(end_), bytes_.data() + bytes_.size(), untouched);
  }

 private:
  std::vector<std::byte> bytes_;
  std::byte* begin_ = nullptr;
  std::byte* end_ = nullptr;
};

/// A third special values, a third any bits, a third numbers of like size, whose roundings show.
std::vector<std::byte> some_values(ElementKind kind, std::mt19937_64& random) {
  const std::vector<ElementBits> special = special_values(kind);
  const auto size = static_cast<std::size_t>(size_of(kind));
  const ElementBits like_one = ElementBits{0x3} << (8 * size - 4);
  std::vector<std::byte> values(kMost * size);
  for (std::size_t i = 0; i < kMost; ++i) {
    const std::uint64_t draw = random();
    const ElementBits bits = random();
    const ElementBits fraction = bits >> (64 - 8 * size + 4);
    const ElementBits value = draw % 3 == 0   ? special[draw / 3 % special.size()]
                              : draw % 3 == 1 ? bits
                                              : like_one | fraction;
    std::memcpy(values.data() + i * size, &value, size);
  }
  return values;
}

/// How the buffers lie: their vectors begin at the same elements, or each lies elsewhere.
enum class Places { together, anywhere };

struct Case {
  Reduction reduction;
  std::size_t operands;
  std::size_t results;
  std::size_t count;
  std::size_t misaligned;  // elements
  Places places;
  LaunchShape shape;
};

class ReduceBodies : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    std::mt19937_64 random(7);
    for (std::size_t k = 0; k < kMostOfOperands; ++k) values_.push_back(some_values(GetParam().from, random));
  }

  /// Which results are operands, where they can be, changes from case to case.
  void check(const Case& given) {
    const Reduction& reduction = given.reduction;
    const std::size_t count = given.count;
    const auto from = static_cast<std::size_t>(size_of(reduction.kind));
    const auto to = static_cast<std::size_t>(size_of(reduction.result));
    const auto shift = [&](std::size_t k) {
      return given.misaligned + (given.places == Places::anywhere ? 3 * k : 0);
    };
    std::vector<const std::byte*> operands;
    std::vector<const std::byte*> originals;
    std::vector<std::byte*> results;
    for (std::size_t k = 0; k < given.operands; ++k) {
      std::byte* const operand = operands_[k].place(shift(k) * from, count * from);
      std::memcpy(operand, values_[k].data(), count * from);
      operands.push_back(operand);
      originals.push_back(values_[k].data());
      const bool in_place = reduction.kind == reduction.result && (k + count + given.misaligned) % 4 == 0;
      if (in_place && results.size() < given.results) results.push_back(operand);
    }
    for (std::size_t r = results.size(); r < given.results; ++r) {
      results.push_back(results_[r].place(shift(r + 1) * to, count * to));
    }
    std::vector<std::byte> expected(count * to);
    std::byte* const expected_at[] = {expected.data()};
    combine_many_with(Isa::portable, reduction, expected_at, originals, static_cast<Count>(count),
                      Stores::cached);

    ExchangeArguments arguments{};
    arguments.reduce = reduce_arguments(reduction, results, operands, static_cast<Count>(count));
    const bool by_vectors = given.places == Places::together && count * std::min(from, to) >= 32;
    ASSERT_TRUE(!by_vectors || arguments.reduce.head < 16);
    kernel_of(reduction).run(&arguments, given.shape, {});

    for (const std::byte* const result : results) {
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(std::memcmp(result + i * to, expected.data() + i * to, to), 0)
            << to_text(reduction.op) << " by " << reduction.divisor << ", " << given.operands << " operands, "
            << given.results << " results, element " << i << " of " << count << ", misaligned by "
            << given.misaligned << ", shape " << given.shape.blocks << "x" << given.shape.threads;
      }
    }
    for (std::size_t k = 0; k < given.operands; ++k) {
      const bool written = std::ranges::find(results, operands_[k].begin()) != results.end();
      ASSERT_TRUE(operands_[k].guards_are_whole()) << "operand " << k;
      ASSERT_TRUE(written || std::memcmp(operands[k], originals[k], count * from) == 0) << "operand " << k;
    }
    for (std::size_t r = 0; r < given.results; ++r) {
      const bool used = results[r] == results_[r].begin();
      ASSERT_TRUE(!used || results_[r].guards_are_whole()) << "result " << r;
    }
  }

  void check_all(ReduceOp op) {
    const auto [from, to] = GetParam();
    const auto alignments = static_cast<std::size_t>(16 / std::min(size_of(from), size_of(to)));
    std::size_t turn = 0;
    for (const std::size_t operands : kOperandCounts) {
      for (const std::size_t count : kCounts) {
        for (std::size_t misaligned = 0; misaligned < alignments; ++misaligned) {
          for (const Places places : {Places::together, Places::anywhere}) {
            ++turn;
            const int divisor = turn % 3 == 0 ? 1 : static_cast<int>(operands);
            check({{from, op, divisor, to},
                   operands,
                   1 + turn % kMostOfResults,
                   count,
                   misaligned,
                   places,
                   kShapes[turn % std::size(kShapes)]});
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }

  std::vector<std::vector<std::byte>> values_;
  std::vector<Buffer> operands_{kMostOfOperands};
  std::vector<Buffer> results_{kMostOfResults};
};

TEST_P(ReduceBodies, Sum) { check_all(ReduceOp::sum); }
TEST_P(ReduceBodies, Prod) { check_all(ReduceOp::prod); }
TEST_P(ReduceBodies, Min) { check_all(ReduceOp::min); }
TEST_P(ReduceBodies, Max) { check_all(ReduceOp::max); }
TEST_P(ReduceBodies, Avg) { check_all(ReduceOp::avg); }

TEST_P(ReduceBodies, EveryShapeAndNumberOfResults) {
  for (std::size_t results = 1; results <= kMostOfResults; ++results) {
    for (const LaunchShape shape : kShapes) {
      check({{GetParam().from, ReduceOp::max, 1, GetParam().to},
             4,
             results,
             kMost,
             1,
             Places::together,
             shape});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReduceBodies,
                         testing::Values(Pair{ElementKind::float32, ElementKind::float32},
                                         Pair{ElementKind::float64, ElementKind::float64},
                                         Pair{ElementKind::float16, ElementKind::float16},
                                         Pair{ElementKind::bfloat16, ElementKind::bfloat16},
                                         Pair{ElementKind::int32, ElementKind::int32},
                                         Pair{ElementKind::int64, ElementKind::int64},
                                         Pair{ElementKind::float16, ElementKind::float32},
                                         Pair{ElementKind::bfloat16, ElementKind::float32},
                                         Pair{ElementKind::float32, ElementKind::float16},
                                         Pair{ElementKind::float32, ElementKind::bfloat16}),
                         [](const auto& pair) { return name_of(pair); });

TEST(ReduceBody, TakesAsManyBuffersAsItsArgumentsHold) {
  std::vector<std::vector<std::int32_t>> operands(kMostOperands);
  std::vector<std::vector<std::int32_t>> results(kMostResults, std::vector<std::int32_t>(50));
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t k = 0; k < kMostOperands; ++k) {
    for (int i = 0; i < 50; ++i) operands[k].push_back(i * static_cast<int>(k));
    from.push_back(reinterpret_cast<const std::byte*>(operands[k].data()));
    to.push_back(reinterpret_cast<std::byte*>(results[k].data()));
  }
  const Reduction reduction{ElementKind::int32, ReduceOp::sum};
  ExchangeArguments arguments{};
  arguments.reduce = reduce_arguments(reduction, to, from, 50);
  kernel_of(reduction).run(&arguments, {2, 5}, {});
  for (const std::vector<std::int32_t>& result : results) {
    for (int i = 0; i < 50; ++i) ASSERT_EQ(result[static_cast<std::size_t>(i)], i * 127 * 128 / 2);
  }
}

TEST(CopyBody, CopiesAnyBytesToAllPlaces) {
  std::mt19937_64 random(7);
  const std::vector<std::byte> values = some_values(ElementKind::int64, random);
  Buffer source;
  std::vector<Buffer> places(3);
  std::size_t turn = 0;
  for (const std::size_t bytes : {0u, 1u, 3u, 4u, 15u, 16u, 17u, 63u, 64u, 65u, 1000u, 7999u}) {
    for (std::size_t from_shift = 0; from_shift < 16; ++from_shift) {
      for (std::size_t to_shift = 0; to_shift < 16; ++to_shift) {
        std::byte* const from = source.place(from_shift, bytes);
        std::memcpy(from, values.data(), bytes);
        std::vector<std::byte*> to;
        const std::size_t step = turn % 2 * turn;
        for (Buffer& place : places) to.push_back(place.place(to_shift + to.size() * step, bytes));
        ExchangeArguments arguments{};
        arguments.reduce = copy_arguments(to, from, bytes);
        kernel("copy").run(&arguments, kShapes[turn++ % std::size(kShapes)], {});
        for (std::size_t r = 0; r < to.size(); ++r) {
          ASSERT_EQ(std::memcmp(to[r], values.data(), bytes), 0) << bytes << " bytes to place " << r;
          ASSERT_TRUE(places[r].guards_are_whole()) << bytes << " bytes to place " << r;
        }
      }
    }
  }
}

TEST(FillBody, RepeatsThePattern) {
  constexpr std::uint8_t kPattern[] = {0x11, 0x22, 0x33, 0x44};
  Buffer buffer;
  std::size_t turn = 0;
  for (const std::size_t bytes : {0u, 1u, 2u, 3u, 15u, 16u, 17u, 33u, 1000u}) {
    for (std::size_t shift = 0; shift < 16; ++shift) {
      const FillArguments arguments{buffer.place(shift, bytes), static_cast<std::int64_t>(bytes), 0x44332211};
      kernel("fill").run(&arguments, kShapes[turn++ % std::size(kShapes)], {});
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(arguments.to[i], std::byte{kPattern[i % 4]}) << i;
      ASSERT_TRUE(buffer.guards_are_whole()) << bytes;
    }
  }
}

TEST(CompareBody, CountsElementsThatDiffer) {
  std::mt19937_64 random(7);
  const std::vector<std::byte> values = some_values(ElementKind::int64, random);
  Buffer left;
  Buffer right;
  std::size_t turn = 0;
  for (const std::size_t size : {1u, 2u, 4u, 8u}) {
    for (const std::size_t count : kCounts) {
      for (std::size_t shift = 0; shift < 16 / size; ++shift) {
        for (const std::size_t apart : {0u, 1u}) {
          std::byte* const a = left.place(shift * size, count * size);
          std::byte* const b = right.place((shift + apart) * size, count * size);
          std::memcpy(a, values.data(), count * size);
          std::memcpy(b, values.data(), count * size);
          std::set<std::size_t> differing;
          for (std::size_t i = turn % 5; i < count; i += 1 + random() % 40) differing.insert(i);
          if (count > 0 && turn % 2 == 0) differing.insert(count - 1);
          for (const std::size_t i : differing) b[i * size + random() % size] ^= std::byte{0x80};
          std::uint64_t counted = 5;
          const CompareArguments arguments{a, b, static_cast<std::int64_t>(count), &counted,
                                           static_cast<std::int32_t>(size)};
          kernel("compare").run(&arguments, kShapes[turn++ % std::size(kShapes)], {});
          ASSERT_EQ(counted, 5 + differing.size()) << count << " elements of " << size;
        }
      }
    }
  }
}

TEST(WorkKernel, DoesAsManyTurnsAsItIsTold) {
  float result = 7;
  kernel("work").run(std::array{WorkArguments{&result, 0, 0.5F, 1}}.data(), {2, 3}, {});
  EXPECT_EQ(result, 0);  // the first thread begins with its number
  for (std::int64_t turns : {1, 2, 3, 200}) {
    kernel("work").run(std::array{WorkArguments{&result, turns, 0.5F, 1}}.data(), {2, 3}, {});
    EXPECT_EQ(result, turns == 200 ? 2.0F : 2 - std::ldexp(1.0F, 1 - static_cast<int>(turns))) << turns;
  }
}

TEST(KernelTable, NamesEachKernelOnce) {
  std::set<std::string_view> names;
  for (const HostKernel& known : host_kernels()) {
    EXPECT_TRUE(names.insert(known.name).second) << known.name;
    EXPECT_EQ(find_host_kernel(known.name), &known);
    EXPECT_LE(known.argument_bytes, 4096u) << known.name;
  }
  EXPECT_EQ(names.size(), 45u);
  EXPECT_EQ(find_host_kernel("polyring_reduce"), nullptr);
}

TEST(Grid, HasFewBlocksForFewBytesAndNeverMoreThanAllowed) {
  EXPECT_EQ(blocks_for(0, 100), 1);
  EXPECT_EQ(blocks_for(1, 100), 1);
  EXPECT_EQ(blocks_for(kBlockThreads * kThreadBytes, 100), 1);
  EXPECT_EQ(blocks_for(kBlockThreads * kThreadBytes + 1, 100), 2);
  EXPECT_EQ(blocks_for(std::int64_t{1} << 40, 100), 100);
  EXPECT_EQ(blocks_for(std::int64_t{1} << 40, 0), 1);
}

}  // namespace
}  // namespace polyring
