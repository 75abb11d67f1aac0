// Calibration: what links were measured to do, in place of what is stated of them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "topology/cluster.hpp"

namespace polyring {

/// Links of one class are assumed to be equal. Network: a host's NICs and what lies between those of one leaf
/// switch; uplink: of a leaf switch, and the way over the spine.
enum class LinkClass { memory, nvlink, xgmi, c2c, pcie, socket_bus, network, uplink };

inline constexpr LinkClass kLinkClasses[] = {LinkClass::memory,  LinkClass::nvlink, LinkClass::xgmi,
                                             LinkClass::c2c,     LinkClass::pcie,   LinkClass::socket_bus,
                                             LinkClass::network, LinkClass::uplink};

LinkClass class_of(LinkKind kind);
std::string_view to_text(LinkClass link);  // as to_text(LinkKind); "network", "uplink"

/// What the links of one class do.
struct LinkFit {
  LinkClass link = LinkClass::network;
  Seconds latency;      // of a message that crosses one, one way
  Bandwidth bandwidth;  // of each, where none is stated; else 0, and …
  double share = 1;     // … the part of the stated bandwidth that payload gets
  // One standard error of each, as a part of it; nothing where the runs do not tell.
  std::optional<double> latency_error;
  std::optional<double> bandwidth_error;
};

/// Of predicted times, each as |predicted / measured − 1|.
struct PredictionError {
  int points = 0;
  double mean = 0;
  double worst = 0;
  double spread = 0;  // 95 % of the points are not further off
};

/// What a calibration was measured on.
struct CalibrationRange {
  int most_ranks = 0;
  int most_hosts = 0;
  Bytes least;
  Bytes largest;
};

struct Calibration {
  std::vector<LinkFit> links;  // one for each class that messages crossed, in the order of kLinkClasses
  PredictionError fitted;      // of the points that it was fitted to
  std::optional<PredictionError> checked;  // of others
  CalibrationRange range;                  // of all of these

  const LinkFit* find(LinkClass link) const;
  /// Of predictions: that of the points it was not fitted to, where there are any.
  const PredictionError& error() const { return checked ? *checked : fitted; }
};

/// The summary of these points; all times are above 0, and there is one at least.
PredictionError prediction_error(const std::vector<double>& predicted, const std::vector<double>& measured);

/// What messages among `ranks` ranks of hosts like the cluster's first may cross, and the calibration does
/// not have: there `calibrated` keeps what is stated. Links of unknown speed do not count.
std::vector<LinkClass> not_fitted(const Cluster& cluster, const Calibration& calibration, int ranks);

/// The cluster with its links as they were measured. Classes that were not measured keep what is stated,
/// except that uplinks reach the share that the network does: they are of one kind.
Cluster calibrated(Cluster cluster, const Calibration& calibration);

}  // namespace polyring
