#include "bench/predict/strategy_times.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "bench/predict/efficiency.hpp"
#include "simulation/messages.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/resize.hpp"

namespace polyring {

namespace {

constexpr int kBitsOfScale = 6;

/// GPUs of an NVLink domain: large allreduces in larger ones take minutes to simulate, and are taken to be as
/// fast as their links.
constexpr int kLargestSimulated = 16;

/// The powers of 64 that a count lies between are those of 64^scale and the next.
int scale_of(Count count) {
  return (static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count))) - 1) / kBitsOfScale;
}

}  // namespace

StrategyTimes::StrategyTimes(const ScalingCase& scaling, const std::string& algorithm,
                             const PlanConstraints& constraints, const Cluster& cluster, const Router& router,
                             Detail detail)
    : scaling_(scaling),
      algorithm_(algorithm),
      constraints_(constraints),
      cluster_(cluster),
      router_(router),
      detail_(detail),
      known_(step_ranges(scaling, algorithm, cluster)) {}

/// Planned for `largest` elements.
GroupCollectives& StrategyTimes::of(const GroupCall& call, Count largest) {
  const auto found = groups_.find({call, largest});
  if (found != groups_.end()) return found->second;
  PlanConstraints constraints = constraints_;
  const bool of_gradients = call.payload == SentData::gradients;
  if (!of_gradients) {
    constraints.dims.clear();
    constraints.patterns.clear();
  }
  const ElementSizes sizes(scaling_.kind, of_gradients ? ReduceOp::avg : ReduceOp::sum, scaling_.partials);
  GroupCollectives made(cluster_, router_, algorithm_, constraints, sizes, call.groups.members,
                        call.groups.stride, {.costs = scaling_.conditions.costs});
  made.plan(call.collective, largest);
  return groups_.emplace(std::tuple(call, largest), std::move(made)).first->second;
}

void StrategyTimes::plan(const GroupCall& call, Count largest) { largest_[call] = largest; }

GroupCollectives& StrategyTimes::planned(const GroupCall& call) { return of(call, largest_.at(call)); }

Plan StrategyTimes::plan_of(const GroupCall& call) { return planned(call).plan(call.collective, 0); }

Seconds StrategyTimes::time(const GroupCall& call, Count count) {
  if (call.groups.members == 1 || count <= 0) return {};
  if (detail_ == Detail::simulated) return planned(call).time(call.collective, count);
  const int scale = scale_of(count);
  const Count low = Count{1} << (kBitsOfScale * scale);
  const Count high = low << kBitsOfScale;
  GroupCollectives& groups = of(call, high);
  const Seconds least = groups.time(call.collective, low);
  const Seconds most = groups.time(call.collective, high);
  const double part = static_cast<double>(count - low) / static_cast<double>(high - low);
  return least + part * (most - least);
}

/// Of neighbouring ranks.
Seconds StrategyTimes::large_allreduce(int ranks) {
  const auto [at, added] = large_.try_emplace(ranks);
  if (added && is_vendor(algorithm_)) {
    const Cluster of_ranks = with_ranks(cluster_, ranks);
    at->second = vendor_time(vendor_run(algorithm_, of_ranks, kLargePayload), kLargePayload);
  } else if (added) {
    const Count count = static_cast<Count>(kLargePayload.value) / size_of(scaling_.kind);
    at->second = of({{ranks, 1}, SentData::gradients, Collective::allreduce}, count)
                     .time(Collective::allreduce, count);
  }
  return at->second;
}

double StrategyTimes::stretch(const RankGroups& groups, const StepCosts& costs) {
  const int domain = ranks_of_domain(cluster_);
  const bool apart = cluster_.domain_count() > 1 && !scaling_.spread;
  const bool inside = apart && domain % (groups.members * groups.stride) == 0;
  const double part = inside ? costs.inside : costs.network;
  const std::optional<Bandwidth> usable = inside ? known_.usable_inside : known_.usable;
  if (!usable || domain > kLargestSimulated) return 1 / part;
  // As in a data-parallel step: no faster than that part of the usable rate, and no faster than simulated.
  const int ranks = inside ? domain : cluster_.ranks();
  const double crossing = 2.0 * (ranks - 1) / ranks * static_cast<double>(kLargePayload.value);
  return std::max(1.0, crossing / (part * usable->value) / large_allreduce(ranks).value);
}

std::string StrategyTimes::bottleneck(const GroupCall& call, Count count) {
  return planned(call).bottleneck(call.collective, count);
}

Simulation StrategyTimes::send(const Strategy& strategy, int boundary, bool forward, double bytes) {
  const int stride = stage_stride(strategy);
  const int from = boundary % strategy.pipeline * stride;
  const int to = (boundary + 1) % strategy.pipeline * stride;
  const int of_data = strategy.data_near ? strategy.intra : strategy.intra * strategy.pipeline;
  std::vector<Message> messages;
  for (int replica = 0; replica < strategy.replicas; ++replica) {
    for (int split = 0; split < strategy.intra; ++split) {
      const int rank = replica * of_data + split;
      messages.push_back(forward ? Message{rank + from, rank + to, bytes}
                                 : Message{rank + to, rank + from, bytes});
    }
  }
  return simulate(messages, cluster_, router_, scaling_.conditions.costs);
}

Seconds StrategyTimes::send_time(const Strategy& strategy, int boundary, bool forward, double bytes) {
  boundary %= strategy.pipeline;
  if (detail_ == Detail::rough) {
    // Boundaries that begin at the same place of a host are taken to be equal, in both directions.
    const bool wraps = boundary + 1 == strategy.pipeline;
    const int stride = stage_stride(strategy);
    if (!wraps) boundary = boundary * stride % ranks_of_domain(cluster_) / stride;
    if (boundary + 1 >= strategy.pipeline && !wraps) boundary = 0;
    forward = true;
  }
  const auto [at, added] =
      sends_.try_emplace({RankGroups{strategy.intra, stage_stride(strategy)}, strategy.pipeline,
                          strategy.replicas, boundary, forward, bytes});
  if (added) at->second = send(strategy, boundary, forward, bytes).time;
  return at->second;
}

}  // namespace polyring
