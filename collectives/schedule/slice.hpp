// Slice: a contiguous range of elements, and part(): the only place that splits one.
#pragma once

#include <algorithm>
#include <cassert>
#include <compare>
#include <cstdint>

namespace polyring {

/// A participant of a collective, 0 to ranks − 1.
using Rank = int;

/// A number of elements.
using Count = std::int64_t;

struct Slice {
  Count offset = 0;
  Count count = 0;
  auto operator<=>(const Slice&) const = default;

  Count end() const { return offset + count; }
  bool empty() const { return count == 0; }
  bool overlaps(Slice other) const {
    return !empty() && !other.empty() && offset < other.end() && other.offset < end();
  }
};

/// Parts [first, first + number) of `parts` nearly equal ones, as one slice. Where the count does not divide,
/// the first `count mod parts` parts have one element more than the others; where it is smaller than `parts`,
/// the last are empty.
inline Slice part(Slice whole, int first, int parts, int number = 1) {
  assert(parts > 0 && first >= 0 && number >= 0 && first + number <= parts);
  const Count small = whole.count / parts;
  const Count larger = whole.count % parts;
  const auto begin_of = [&](Count index) { return index * small + std::min(index, larger); };
  const Count begin = begin_of(first);
  return {whole.offset + begin, begin_of(first + number) - begin};
}

}  // namespace polyring
