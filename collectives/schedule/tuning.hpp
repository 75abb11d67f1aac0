// Tuning: plans of multi-ring that were found by measurement, which of them suits a payload, and what is
// worth trying.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/data_device.hpp"
#include "collectives/schedule/plan.hpp"

namespace polyring {

/// A payload in more chunks than these has more cost than overlap.
inline constexpr std::uint64_t kMostUsefulChunks = 1024;

/// What a choice holds for: so many ranks on such hosts over such wires.
struct TuningPlace {
  std::string machine;  // the hosts' processor
  int cores = 0;        // of a host
  std::string network;  // between hosts, in words; also where they are emulated; else empty
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;  // 0: hosts differ
  std::string transport;
  DataDevice device = DataDevice::cpu;

  bool operator==(const TuningPlace&) const = default;
};

struct TunedPlan {
  TuningPlace place;
  Bytes payload;
  Plan plan;
  bool is_default = false;  // nothing was faster than the plan that is taken without a choice
  // Medians of the final, in microseconds.
  double time_us = 0;
  double default_time_us = 0;

  bool operator==(const TunedPlan&) const = default;
};

/// `older` with each of `newer` added, in the place of the choice for the same place and payload if there is
/// one.
std::vector<TunedPlan> merged(std::vector<TunedPlan> older, std::span<const TunedPlan> newer);

/// The choice for this place whose payload is nearest by ratio, at most by a factor of 4; null when there is
/// none. Of two that are equally near, the smaller.
const TunedPlan* nearest(std::span<const TunedPlan> choices, const TuningPlace& place, Bytes payload);

/// The plan without a chunk size that cuts nothing, so that plans with one schedule are equal.
Plan effective(Plan plan, Bytes payload);

/// Whether two plans have one and the same schedule, though they may name its patterns differently. Both must
/// name them.
bool same_schedule(const Plan& a, const Plan& b);

/// Plans that differ from `plan` in the pattern of one dimension, and are as good as any for `payload` at
/// first sight. `plan` must name its patterns.
std::vector<Plan> other_patterns(const Plan& plan, Bytes payload);

/// The plan with other numbers of lanes and other chunk sizes, as far as they make sense for `payload`.
std::vector<Plan> other_cuts(const Plan& plan, Bytes payload);

}  // namespace polyring
