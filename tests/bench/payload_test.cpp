// The payloads that other tests trust, against sums by hand and plain loops.
#include "bench/measure/payload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace polyring {
namespace {

TEST(Payload, NoticesLostDoubledAndMisplacedContributions) {
  for (const ElementKind kind : kElementKinds) {
    const Payload payload(kind, ReduceOp::sum, 4);
    const Count count = 2000;
    const auto size = static_cast<std::size_t>(size_of(kind));
    std::vector<std::byte> sum(2000 * size);
    payload.fill(0, sum.data(), count);
    EXPECT_GT(payload.wrong(sum.data(), count), count / 2) << "one rank's input alone";
  }
}

TEST(Payload, NoticesALostRankHoweverManyThereAre) {
  const int ranks = 600;
  const Payload payload(ElementKind::int32, ReduceOp::sum, ranks);
  std::vector<std::int32_t> sum(3000);
  std::vector<std::vector<std::int32_t>> inputs(ranks, std::vector<std::int32_t>(3000));
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto& input = inputs[static_cast<std::size_t>(rank)];
    payload.fill(rank, reinterpret_cast<std::byte*>(input.data()), 3000);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  ASSERT_EQ(payload.wrong(reinterpret_cast<const std::byte*>(sum.data()), 3000), 0);
  for (const auto& lost : inputs) {
    std::vector<std::int32_t> without = sum;
    for (std::size_t i = 0; i < sum.size(); ++i) without[i] -= lost[i];
    EXPECT_GT(payload.wrong(reinterpret_cast<const std::byte*>(without.data()), 3000), 0);
  }
}

/// What three ranks' outputs of int32 are, put together from their inputs by plain loops.
std::vector<std::vector<std::int32_t>> outputs_of(const Payload& payload, Collective collective,
                                                  Count count) {
  constexpr int kRanks = 3;
  const auto block = static_cast<std::size_t>(count / kRanks);
  const auto given = static_cast<std::size_t>(input_count(collective, kRanks, count));
  std::vector<std::vector<std::int32_t>> inputs(kRanks, std::vector<std::int32_t>(given));
  for (Rank rank = 0; rank < kRanks; ++rank) {
    payload.fill({collective, rank, count},
                 reinterpret_cast<std::byte*>(inputs[static_cast<std::size_t>(rank)].data()));
  }
  std::vector<std::vector<std::int32_t>> outputs(kRanks);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    std::vector<std::int32_t>& output = outputs[rank];
    if (collective == Collective::reduce_scatter) {
      for (std::size_t i = 0; i < block; ++i)
        output.push_back(inputs[0][rank * block + i] + inputs[1][rank * block + i] +
                         inputs[2][rank * block + i]);
      continue;
    }
    for (const auto& input : inputs) {
      const std::size_t first = collective == Collective::alltoall ? rank * block : 0;
      output.insert(output.end(), input.begin() + static_cast<std::ptrdiff_t>(first),
                    input.begin() + static_cast<std::ptrdiff_t>(first + block));
    }
  }
  return outputs;
}

TEST(Payload, OfBlocksNoticesWhatIsAtAWrongPlace) {
  const Payload payload(ElementKind::int32, ReduceOp::sum, 3);
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    // Values repeat after kPeriod elements, and blocks may be as long.
    for (const Count block : {Count{5}, Payload::kPeriod, 2 * Payload::kPeriod, Count{3000}}) {
      const Count count = 3 * block;
      const auto outputs = outputs_of(payload, collective, count);
      const auto wrong = [&](Rank rank, const std::vector<std::int32_t>& output, Count first = 0) {
        return payload.wrong({collective, rank, count},
                             reinterpret_cast<const std::byte*>(output.data() + first),
                             static_cast<Count>(output.size()) - first, Match::bits, first);
      };
      for (Rank rank = 0; rank < 3; ++rank) {
        const auto& right = outputs[static_cast<std::size_t>(rank)];
        for (const Count first : {Count{0}, Count{1}, block - 1, static_cast<Count>(right.size()) - 1})
          EXPECT_EQ(wrong(rank, right, first), 0) << to_text(collective) << " " << block << " " << first;
        EXPECT_EQ(wrong(rank, std::vector<std::int32_t>(right.size(), -1)), static_cast<Count>(right.size()));
        std::vector<std::int32_t> other = right;
        ++other.back();
        EXPECT_EQ(wrong(rank, other), 1);
        const Rank next = (rank + 1) % 3;
        if (collective != Collective::allgather) {
          EXPECT_GT(wrong(rank, outputs[static_cast<std::size_t>(next)]), block / 2)
              << to_text(collective) << block;
        }
        if (collective == Collective::reduce_scatter) continue;
        other = right;  // with two blocks exchanged
        std::swap_ranges(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(block),
                         other.end() - static_cast<std::ptrdiff_t>(block));
        EXPECT_GT(wrong(rank, other), block) << to_text(collective) << " " << block;
      }
    }
  }
}

TEST(Payload, AgreesWithAPlainLoop) {
  // The reference of the other tests, checked against sums by hand.
  const int ranks = 5;
  const Payload payload(ElementKind::int64, ReduceOp::sum, ranks);
  std::vector<std::int64_t> sum(3000);
  for (Rank rank = 0; rank < ranks; ++rank) {
    std::vector<std::int64_t> input(3000);
    payload.fill(rank, reinterpret_cast<std::byte*>(input.data()), 3000);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  EXPECT_EQ(payload.wrong(reinterpret_cast<const std::byte*>(sum.data()), 3000), 0);
  sum[1500] += 1;
  sum[17] -= 1;
  EXPECT_EQ(payload.wrong(reinterpret_cast<const std::byte*>(sum.data()), 3000), 2);
}

constexpr Count kPeriod = Payload::kPeriod;

template <typename T>
std::vector<std::vector<T>> special_inputs(const Payload& payload, int ranks) {
  std::vector<std::vector<T>> inputs(static_cast<std::size_t>(ranks), std::vector<T>(kPeriod));
  for (Rank rank = 0; rank < ranks; ++rank) {
    payload.fill(rank, reinterpret_cast<std::byte*>(inputs[static_cast<std::size_t>(rank)].data()), kPeriod);
  }
  return inputs;
}

template <typename T>
Count wrong(const Payload& payload, const std::vector<T>& result, Match match = Match::bits) {
  return payload.wrong(reinterpret_cast<const std::byte*>(result.data()), static_cast<Count>(result.size()),
                       match);
}

TEST(SpecialPayload, MakesAllPairsMeet) {
  for (const ElementKind kind : {ElementKind::float32, ElementKind::int32}) {
    const std::vector<ElementBits> values = special_values(kind);
    for (const int ranks : {2, 3, 8, 64}) {
      for (const ReduceOp op : kReduceOps) {
        if (op == ReduceOp::avg) continue;  // which leaves pairs of the same out
        const Payload payload(kind, op, ranks, PayloadValues::special);
        const auto inputs = special_inputs<std::uint32_t>(payload, ranks);
        std::set<std::pair<ElementBits, ElementBits>> met;
        for (std::size_t i = 0; i < kPeriod; ++i) {
          std::map<ElementBits, int> here;
          for (const auto& input : inputs) ++here[input[i]];
          for (const auto& [a, of_a] : here) {
            for (const auto& [b, of_b] : here) {
              if (a != b || of_a > 1) met.emplace(a, b);
            }
          }
        }
        for (const ElementBits a : values) {
          for (const ElementBits b : values) {
            EXPECT_TRUE(met.contains({a, b}))
                << to_text(op) << " of " << to_text(kind) << ": " << a << ", " << b;
          }
        }
      }
    }
  }
}

TEST(SpecialPayload, HasNansZerosDenormalsInfinitiesAndTheLargestNumbers) {
  std::multiset<int> classes;
  int negative = 0;
  for (const ElementBits bits : special_values(ElementKind::float32)) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    classes.insert(std::fpclassify(value));
    negative += std::signbit(value) ? 1 : 0;
  }
  EXPECT_EQ(classes.count(FP_NAN), 8u);
  EXPECT_EQ(classes.count(FP_ZERO), 2u);
  EXPECT_EQ(classes.count(FP_SUBNORMAL), 4u);
  EXPECT_EQ(classes.count(FP_INFINITE), 2u);
  EXPECT_EQ(classes.count(FP_NORMAL), 4u);
  EXPECT_EQ(negative, 10);
  const std::vector<ElementBits> values = special_values(ElementKind::float64);
  const auto has = [&](double value) {
    return std::find(values.begin(), values.end(), std::bit_cast<std::uint64_t>(value)) != values.end();
  };
  EXPECT_TRUE(has(std::numeric_limits<double>::max()) && has(-std::numeric_limits<double>::max()));
  EXPECT_TRUE(has(std::numeric_limits<double>::denorm_min()) &&
              has(std::numeric_limits<double>::quiet_NaN()));
}

/// The result that the payload expects, in other words than its own: in the type itself, from the last rank
/// to the first.
template <typename T>
T backwards(ReduceOp op, const std::vector<std::vector<T>>& inputs, std::size_t i) {
  T result = inputs.back()[i];
  for (std::size_t rank = inputs.size() - 1; rank-- > 0;) {
    const T operand = inputs[rank][i];
    const bool ordered = result == result && operand == operand;
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result = result + operand;
        break;
      case ReduceOp::prod:
        result = result * operand;
        break;
      case ReduceOp::min:
        result = !ordered ? result + operand
                 : std::pair(operand, !std::signbit(operand)) < std::pair(result, !std::signbit(result))
                     ? operand
                     : result;
        break;
      case ReduceOp::max:
        result = !ordered ? result + operand
                 : std::pair(operand, !std::signbit(operand)) > std::pair(result, !std::signbit(result))
                     ? operand
                     : result;
        break;
    }
  }
  if (op == ReduceOp::avg) result /= static_cast<T>(inputs.size());
  return result == result ? result : std::numeric_limits<T>::quiet_NaN();
}

template <typename T>
void expect_right_backwards(ElementKind kind) {
  for (const int ranks : {2, 3, 8}) {
    for (const ReduceOp op : kReduceOps) {
      const Payload payload(kind, op, ranks, PayloadValues::special);
      const auto inputs = special_inputs<T>(payload, ranks);
      std::vector<T> result;
      for (std::size_t i = 0; i < kPeriod; ++i) result.push_back(backwards(op, inputs, i));
      EXPECT_EQ(wrong(payload, result), 0) << to_text(op) << " of " << to_text(kind) << ", " << ranks;
    }
  }
}

TEST(SpecialPayload, HasTheSameResultInAnyOrder) {
  expect_right_backwards<float>(ElementKind::float32);
  expect_right_backwards<double>(ElementKind::float64);
}

TEST(SpecialPayload, OfIntegersWrapsAround) {
  const Payload payload(ElementKind::int32, ReduceOp::avg, 3, PayloadValues::special);
  const auto inputs = special_inputs<std::uint32_t>(payload, 3);
  std::vector<std::int32_t> average;
  for (std::size_t i = 0; i < kPeriod; ++i)
    average.push_back(static_cast<std::int32_t>(inputs[0][i] + inputs[1][i] + inputs[2][i]) / 3);
  EXPECT_EQ(wrong(payload, average), 0);
  const Payload greatest(ElementKind::int64, ReduceOp::max, 2, PayloadValues::special);
  const auto values = special_inputs<std::int64_t>(greatest, 2);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < kPeriod; ++i) result.push_back(std::max(values[0][i], values[1][i]));
  EXPECT_EQ(wrong(greatest, result), 0);
}

TEST(SpecialPayload, OfOneRankIsItsInput) {
  const Payload payload(ElementKind::float32, ReduceOp::max, 1, PayloadValues::special);
  EXPECT_EQ(wrong(payload, special_inputs<std::uint32_t>(payload, 1).front()), 0);
}

/// What is right by its bits and what by its value, of a minimum.
TEST(SpecialPayload, MatchesByValueWhatMpiLeavesOpen) {
  const Payload payload(ElementKind::float32, ReduceOp::min, 2, PayloadValues::special);
  const auto inputs = special_inputs<float>(payload, 2);
  const auto least = [&](std::size_t i) { return backwards(ReduceOp::min, inputs, i); };
  std::vector<float> right;
  for (std::size_t i = 0; i < kPeriod; ++i) right.push_back(least(i));
  std::vector<float> other = right;  // NaNs of another sort, zeros of the other sign, and NaNs that lose
  std::vector<float> bad = right;    // what is the minimum by no rule
  Count others = 0;
  Count nans = 0;
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const float number = inputs[0][i] == inputs[0][i] ? inputs[0][i] : inputs[1][i];
    if (right[i] == right[i] && right[i] != 0) continue;
    ++others;
    other[i] = right[i] == 0 ? -right[i] : number == number ? number : std::bit_cast<float>(0xffc00001u);
    bad[i] = 1;
    nans += right[i] == right[i] ? 0 : 1;
  }
  EXPECT_GT(nans, 100);
  EXPECT_GT(others, nans);
  EXPECT_EQ(wrong(payload, other), others);
  EXPECT_EQ(wrong(payload, other, Match::value), 0);
  EXPECT_EQ(wrong(payload, bad, Match::value), others);
}

TEST(SpecialPayload, OfASumMatchesNoOperandOfANan) {
  const Payload payload(ElementKind::float32, ReduceOp::sum, 2, PayloadValues::special);
  const auto inputs = special_inputs<float>(payload, 2);
  std::vector<float> result;
  Count lost = 0;
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const float sum = inputs[0][i] + inputs[1][i];
    const bool loses = inputs[0][i] != inputs[0][i] && inputs[1][i] == inputs[1][i];
    result.push_back(loses ? inputs[1][i] : sum);
    lost += loses ? 1 : 0;
  }
  EXPECT_GT(lost, 0);
  EXPECT_EQ(wrong(payload, result, Match::value), lost);
}

TEST(PayloadValues, AreNamed) {
  EXPECT_EQ(parse_payload_values("whole"), PayloadValues::whole);
  EXPECT_EQ(parse_payload_values(to_text(PayloadValues::special)), PayloadValues::special);
  try {
    parse_payload_values("nan");
    FAIL() << "no refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "unknown payload 'nan'; choose from whole, special");
  }
}

}  // namespace
}  // namespace polyring
