#include "collectives/schedule/intervals.hpp"

#include <algorithm>
#include <iterator>

namespace polyring {

void Intervals::add(Slice slice) {
  if (slice.empty()) return;
  Count begin = slice.offset;
  Count end = slice.end();
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
  while (next != ends_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace(begin, end);
}

std::vector<Slice> Intervals::gaps(Slice slice) const {
  std::vector<Slice> gaps;
  Count at = slice.offset;
  auto next = ends_.upper_bound(at);
  if (next != ends_.begin()) --next;
  for (; next != ends_.end() && next->first < slice.end(); ++next) {
    if (next->second <= at) continue;
    if (next->first > at) gaps.push_back({at, next->first - at});
    at = next->second;
  }
  if (at < slice.end()) gaps.push_back({at, slice.end() - at});
  return gaps;
}

}  // namespace polyring
