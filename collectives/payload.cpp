#include "collectives/payload.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "collectives/half.hpp"

namespace polyring {
namespace {

template <typename T>
void put(std::byte* to, Count i, T value) {
  std::memcpy(to + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

void store(ElementKind kind, std::byte* to, Count i, double value) {
  switch (kind) {
    case ElementKind::float32:
      return put(to, i, static_cast<float>(value));
    case ElementKind::float64:
      return put(to, i, value);
    case ElementKind::float16:
      return put(to, i, to_float16(static_cast<float>(value)));
    case ElementKind::bfloat16:
      return put(to, i, to_bfloat16(static_cast<float>(value)));
    case ElementKind::int32:
      return put(to, i, static_cast<std::int32_t>(value));
    case ElementKind::int64:
      return put(to, i, static_cast<std::int64_t>(value));
  }
}

// bfloat16 holds whole numbers up to here exactly, and every other kind does too.
constexpr int kExact = 256;

}  // namespace

Payload::Payload(ElementKind kind, ReduceOp op, int ranks) : kind_(kind), op_(op), ranks_(ranks) {
  expected_.resize(static_cast<std::size_t>(kPeriod * size_of(kind)));
  for (Count i = 0; i < kPeriod; ++i) store(kind, expected_.data(), i, result(i));
}

double Payload::input(Rank rank, Count index) const {
  const Count mixed = (index * 31 + Count{rank} * 17) % kPeriod;
  switch (op_) {
    case ReduceOp::sum:
    case ReduceOp::avg: {
      // Beyond kExact ranks, only so many put in anything but zeros; which ones differs from element to
      // element.
      const int values = std::max(2, kExact / ranks_);
      return (index + rank) % ranks_ < kExact ? static_cast<double>(mixed % values) : 0;
    }
    case ReduceOp::prod:
      // At most six ranks put in a two.
      return (index + rank) % ranks_ < 6 && mixed % 2 == 1 ? 2 : 1;
    case ReduceOp::min:
    case ReduceOp::max:
      return static_cast<double>(mixed % 97 - 48);
  }
  return 0;
}

double Payload::result(Count index) const {
  double result = input(0, index);
  for (Rank rank = 1; rank < ranks_; ++rank) {
    const double value = input(rank, index);
    switch (op_) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result += value;
        break;
      case ReduceOp::prod:
        result *= value;
        break;
      case ReduceOp::min:
        result = std::min(result, value);
        break;
      case ReduceOp::max:
        result = std::max(result, value);
        break;
    }
  }
  if (op_ != ReduceOp::avg) return result;
  // Divided as precisely as the kind is divided everywhere: once, in float for the kinds up to float.
  if (kind_ == ElementKind::float64 || is_integer(kind_)) return result / ranks_;
  return static_cast<float>(result) / static_cast<float>(ranks_);
}

void Payload::fill(Rank rank, std::byte* data, Count count) const {
  const Count first = std::min(count, kPeriod);
  for (Count i = 0; i < first; ++i) store(kind_, data, i, input(rank, i));
  const auto size = static_cast<std::size_t>(size_of(kind_));
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  const std::size_t period = static_cast<std::size_t>(kPeriod) * size;
  for (std::size_t at = period; at < bytes; at += period) {
    std::memcpy(data + at, data, std::min(period, bytes - at));
  }
}

Count Payload::wrong(const std::byte* data, Count count) const {
  const auto size = static_cast<std::size_t>(size_of(kind_));
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  Count wrong = 0;
  for (std::size_t at = 0; at < bytes; at += expected_.size()) {
    const std::size_t length = std::min(expected_.size(), bytes - at);
    if (std::memcmp(data + at, expected_.data(), length) == 0) continue;
    for (std::size_t i = 0; i < length; i += size) {
      wrong += std::memcmp(data + at + i, expected_.data() + i, size) != 0 ? 1 : 0;
    }
  }
  return wrong;
}

}  // namespace polyring
