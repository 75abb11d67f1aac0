#include "bench/measure/payload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace polyring {
namespace {

template <typename Word>
void put(std::byte* to, ElementBits bits) {
  const auto word = static_cast<Word>(bits);
  std::memcpy(to, &word, sizeof word);
}

template <typename Word>
ElementBits get(const std::byte* from) {
  Word word{};
  std::memcpy(&word, from, sizeof word);
  return word;
}

void store(ElementKind kind, std::byte* to, Count i, ElementBits bits) {
  to += i * size_of(kind);
  switch (size_of(kind)) {
    case 2:
      return put<std::uint16_t>(to, bits);
    case 4:
      return put<std::uint32_t>(to, bits);
    default:
      return put<std::uint64_t>(to, bits);
  }
}

ElementBits load(ElementKind kind, const std::byte* from, Count i) {
  from += i * size_of(kind);
  switch (size_of(kind)) {
    case 2:
      return get<std::uint16_t>(from);
    case 4:
      return get<std::uint32_t>(from);
    default:
      return get<std::uint64_t>(from);
  }
}

/// Which ranks put in an element's two special values.
struct Places {
  Rank first;
  Rank second;
};

/// Well mixed, and the same on all ranks.
std::uint32_t mixed(Count index) { return static_cast<std::uint32_t>(index) * 2654435761u; }

Places places_of(Count index, int ranks) {
  const auto n = static_cast<std::uint32_t>(ranks);
  const std::uint32_t first = (mixed(index) >> 8) % n;
  const std::uint32_t after = n > 1 ? 1 + (mixed(index) >> 20) % (n - 1) : 0;
  return {static_cast<Rank>(first), static_cast<Rank>((first + after) % n)};
}

// bfloat16 holds whole numbers up to here exactly, and every other kind does too.
constexpr int kExact = 256;

constexpr std::array<std::string_view, 2> kValues{"whole", "special"};

}  // namespace

std::string_view to_text(PayloadValues values) { return kValues[static_cast<std::size_t>(values)]; }

PayloadValues parse_payload_values(std::string_view text) {
  for (const PayloadValues values : {PayloadValues::whole, PayloadValues::special}) {
    if (text == to_text(values)) return values;
  }
  throw Error(ExitCode::usage, unknown_name("payload", text, payload_values_names()));
}

std::vector<std::string> payload_values_names() { return strings(kValues); }

Payload::Payload(ElementKind kind, ReduceOp op, int ranks, PayloadValues values)
    : kind_(kind), op_(op), ranks_(ranks) {
  if (values == PayloadValues::special) special_ = special_values(kind);
  expected_.resize(static_cast<std::size_t>(kPeriod * size_of(kind)));
  std::vector<ElementBits> inputs;
  for (Count i = 0; i < kPeriod; ++i) {
    gather_inputs(i, inputs);
    store(kind, expected_.data(), i, reduced(kind, op, inputs));
  }
}

/// Of all ranks, in their order.
void Payload::gather_inputs(Count index, std::vector<ElementBits>& inputs) const {
  inputs.clear();
  for (Rank rank = 0; rank < ranks_; ++rank) inputs.push_back(input(rank, index));
}

ElementBits Payload::input(Rank rank, Count index) const {
  return special_.empty() ? whole(rank, index) : special(rank, index);
}

ElementBits Payload::whole(Rank rank, Count index) const {
  const Count mixed = (index * 31 + Count{rank} * 17) % kPeriod;
  Count value = 0;
  switch (op_) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      // Beyond kExact ranks, only so many put in anything but zeros; which ones differs from element to
      // element.
      value = (index + rank) % ranks_ < kExact ? mixed % std::max(2, kExact / ranks_) : 0;
      break;
    case ReduceOp::prod:
      // At most six ranks put in a two.
      value = (index + rank) % ranks_ < 6 && mixed % 2 == 1 ? 2 : 1;
      break;
    case ReduceOp::min:
    case ReduceOp::max:
      value = mixed % 97 - 48;
      break;
  }
  return bits_of(kind_, static_cast<double>(value));
}

ElementBits Payload::special(Rank rank, Count index) const {
  const std::size_t number = special_.size();
  // A prime makes neighbours differ in both values of the pair.
  const std::size_t pair = static_cast<std::size_t>(index) * 163 % (number * number);
  const ElementBits first = special_[pair / number];
  const ElementBits second = special_[pair % number];
  const Places places = places_of(index, ranks_);
  if (rank == places.first) return first;
  // The average of the largest float16 and itself depends on what the sum is kept in.
  const bool doubled = op_ == ReduceOp::avg && first == second;
  const bool keeps = op_ == ReduceOp::min || op_ == ReduceOp::max;
  return (rank == places.second && !doubled) || keeps ? second : filler(rank, index);
}

/// What changes at most the sign of a result.
ElementBits Payload::filler(Rank rank, Count index) const {
  if (op_ != ReduceOp::prod) return bits_of(kind_, mixed(index) >> 31 != 0 ? -0.0 : 0.0);
  return bits_of(kind_, ((mixed(index) >> 16) + static_cast<std::uint32_t>(rank)) % 2 != 0 ? -1 : 1);
}

void Payload::fill(Rank rank, std::byte* data, Count count, Count first) const {
  const Count once = std::min(count, kPeriod);
  for (Count i = 0; i < once; ++i) store(kind_, data, i, input(rank, (first + i) % kPeriod));
  const auto size = static_cast<std::size_t>(size_of(kind_));
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  const std::size_t period = static_cast<std::size_t>(kPeriod) * size;
  for (std::size_t at = period; at < bytes; at += period) {
    std::memcpy(data + at, data, std::min(period, bytes - at));
  }
}

/// Of a block in the numbering of values.
Count Payload::begin_of(const Expected& of, Count block) const {
  const Count length = of.block(ranks_);
  return block * (length % kPeriod == 0 ? length + 1 : length);
}

void Payload::fill(const Expected& of, std::byte* data) const {
  if (of.collective == Collective::allreduce) return fill(of.rank, data, of.count);
  const Count length = of.block(ranks_);
  if (of.collective == Collective::allgather) return fill(of.rank, data, length);
  for (Count block = 0; block < ranks_; ++block)
    fill(of.rank, data + bytes_of(block * length, kind_).value, length, begin_of(of, block));
}

/// `expected` are kPeriod elements; what differs from them may be right all the same.
Count Payload::count_wrong(const std::byte* data, Count count, Count first, const std::byte* expected,
                           const std::function<bool(Count index, ElementBits got)>& is_right) const {
  Count wrong = 0;
  for (Count begin = 0; begin < count;) {
    const Count phase = (first + begin) % kPeriod;
    const Count length = std::min(kPeriod - phase, count - begin);
    const std::byte* const at = data + begin * size_of(kind_);
    begin += length;
    if (std::memcmp(at, expected + phase * size_of(kind_), bytes_of(length, kind_).value) == 0) continue;
    for (Count i = 0; i < length; ++i) {
      const ElementBits got = load(kind_, at, i);
      if (got != load(kind_, expected, phase + i) && !is_right(phase + i, got)) ++wrong;
    }
  }
  return wrong;
}

Count Payload::wrong(const std::byte* data, Count count, Match match, Count first) const {
  return count_wrong(data, count, first, expected_.data(), [&](Count index, ElementBits got) {
    return match == Match::value && has_value(index, got);
  });
}

Count Payload::wrong_copies(Rank of, const std::byte* data, Count count, Count first) const {
  std::vector<std::byte> expected(expected_.size());
  fill(of, expected.data(), kPeriod);
  return count_wrong(data, count, first, expected.data(), [](Count, ElementBits) { return false; });
}

Count Payload::wrong(const Expected& expected, const std::byte* data, Count count, Match match,
                     Count first) const {
  if (expected.collective == Collective::allreduce) return wrong(data, count, match, first);
  const Count block = expected.block(ranks_);
  const Count own = begin_of(expected, expected.rank);
  if (expected.collective == Collective::reduce_scatter) return wrong(data, count, match, own + first);
  const Count given = expected.collective == Collective::alltoall ? own : 0;
  Count all = 0;
  for (Count begin = 0, length = 0; begin < count; begin += length) {
    const Count in_block = (first + begin) % block;
    length = std::min(block - in_block, count - begin);
    all += wrong_copies(static_cast<Rank>((first + begin) / block), data + begin * size_of(kind_), length,
                        given + in_block);
  }
  return all;
}

/// Whether it is right by Match::value.
bool Payload::has_value(Count index, ElementBits got) const {
  if (is_integer(kind_)) return false;  // other bits are another value
  const double value = value_of(kind_, got);
  const double expected = value_of(kind_, load(kind_, expected_.data(), index));
  if (!std::isnan(expected)) return value == expected;
  if (std::isnan(value)) return true;
  if (op_ != ReduceOp::min && op_ != ReduceOp::max) return false;
  std::vector<ElementBits> operands;
  gather_inputs(index, operands);
  return std::any_of(operands.begin(), operands.end(),
                     [&](ElementBits operand) { return value_of(kind_, operand) == value; });
}

}  // namespace polyring
