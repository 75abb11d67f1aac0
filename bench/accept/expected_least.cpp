#include "bench/accept/expected_least.hpp"

#include <cmath>

#include "collectives/schedule/bound.hpp"

namespace polyring {

std::optional<Threshold> expected_least(const Cluster& cluster, const std::string&, Bytes size) {
  constexpr double kOfBound = 0.6;
  const Bound bound = allreduce_bound(cluster, size);
  if (!(bound.time.value > 0) || !std::isfinite(bound.time.value)) return std::nullopt;
  const Bandwidth busbw = bus_bandwidth(size, cluster.ranks(), bound.time);
  return Threshold{kOfBound * busbw.gigabytes_per_second(),
                   {},
                   fmt::format("{:.0f} % of what {} allows", 100 * kOfBound, bound.cut)};
}

}  // namespace polyring
