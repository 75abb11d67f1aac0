#include "bench/predict/expected_interval.hpp"

#include <algorithm>
#include <vector>

#include "bench/predict/efficiency.hpp"
#include "bench/predict/usable_rates.hpp"

namespace polyring {
namespace {

/// A link without published figures limits nothing where it carries so much more than the others.
constexpr double kAmple = 1.25;

/// The intervals of all that the payload crosses; none where something is not known of one.
std::vector<ExpectedInterval> intervals_of(const UsableWay& way, const Cluster& cluster, Bytes size,
                                           const PublishedRates& published) {
  std::vector<ExpectedInterval> intervals;
  for (const UsableRate& usable : way) {
    const auto part = efficiency(
        {usable.link, usable.implementation, size, cluster.domain_count(), cluster.ranks()}, published);
    if (!part) return {};
    intervals.push_back({part->low * usable.rate, part->high * usable.rate, usable.rate, usable.link,
                         usable.limit, part->rests_on, part->from_data});
  }
  std::erase_if(intervals, [known = intervals](const ExpectedInterval& one) {
    return !one.from_data && std::ranges::any_of(known, [&](const ExpectedInterval& other) {
      return other.from_data && one.rate.value > kAmple * other.rate.value;
    });
  });
  return intervals;
}

/// Of the slowest; where another one's interval ends before, both limit.
std::optional<ExpectedInterval> slowest(const std::vector<ExpectedInterval>& intervals) {
  if (intervals.empty()) return std::nullopt;
  ExpectedInterval result = *std::ranges::min_element(intervals, {}, &ExpectedInterval::low);
  for (const ExpectedInterval& other : intervals) {
    if (other.high >= result.high) continue;
    result.high = other.high;
    result.from_data = result.from_data && other.from_data;
    result.rests_on += "; " + other.rests_on;
  }
  return result;
}

}  // namespace

std::optional<ExpectedInterval> expected_interval(const Cluster& cluster, Collective collective,
                                                  std::string_view algorithm, Bytes size,
                                                  const PublishedRates& published) {
  std::optional<ExpectedInterval> best;
  for (const UsableWay& way : usable_ways(cluster, collective, algorithm)) {
    const auto interval = slowest(intervals_of(way, cluster, size, published));
    if (interval && (!best || interval->high > best->high)) best = interval;
  }
  return best;
}

}  // namespace polyring
