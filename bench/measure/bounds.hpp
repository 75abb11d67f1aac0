// The least times that measured collectives are compared with, and whether they hold.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "bench/measure/measure.hpp"
#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

class Bounds {
 public:
  Bounds() = default;
  /// Of the topology of this cluster, over whose links payloads have a head start (emulation.hpp).
  Bounds(Cluster cluster, Seconds head_start, Collective collective = Collective::allreduce);

  /// The greatest bound, in microseconds, of such collectives of `size`: the topology's, or the lesser of the
  /// medians of `passes` (memory_pass.hpp) that were measured beside them; there may be none. A bound that
  /// one of `calls` beats by more than noise is none, which is counted.
  std::optional<double> bound_us(Bytes size, std::span<const Samples> passes, std::span<const Samples> calls);

  /// Whether the topology has a bound for this size.
  bool of_topology_known(Bytes size) const { return of_topology(size).has_value(); }

  /// Whole sentences: where bounds are from, and which of them did not hold.
  std::vector<std::string> notes() const;

 private:
  std::optional<Timing> of_topology(Bytes size) const;
  /// Counts those that do not hold.
  bool holds(const Timing& bound, std::span<const Samples> calls, int& beaten);

  Collective collective_ = Collective::allreduce;
  Cluster cluster_;
  Seconds head_start_;
  bool uses_passes_ = false;
  int beaten_passes_ = 0;
  int beaten_links_ = 0;
};

}  // namespace polyring
