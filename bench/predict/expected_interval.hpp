// Expected: what good implementations reach, as an interval, from what the topology lets each of them use
// together (usable_rates.hpp) and from what others measured (efficiency.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "bench/predict/published_rates.hpp"
#include "collectives/schedule/schedule.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Bus bandwidths by nccl-tests' definition.
struct ExpectedInterval {
  Bandwidth low;
  Bandwidth high;
  Bandwidth rate;          // of the link that limits: what it carries that the implementation can use
  std::string link;        // that link: "NVLink 4", "InfiniBand NDR"
  std::string limit;       // in words, as a bound's cut
  std::string rests_on;    // "rings reach 81.1 to 82.2 % of NVLink 4's rate in 5 published figures of …"
  bool from_data = false;  // figures of this very link and implementation; otherwise the interval is wide
};

/// Of a contender's name, as in usable_ways(). Nothing where usable_ways() has none, and for payloads below
/// 1 GiB where no figure of that size is published. Throws as Router does for hosts whose devices are not
/// connected.
std::optional<ExpectedInterval> expected_interval(const Cluster& cluster, Collective collective,
                                                  std::string_view algorithm, Bytes size,
                                                  const PublishedRates& published = published_rates());

}  // namespace polyring
