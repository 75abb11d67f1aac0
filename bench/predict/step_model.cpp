#include "bench/predict/step_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/predict/efficiency.hpp"
#include "bench/predict/expected_interval.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/in_network.hpp"
#include "simulation/price_planner.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/nic_protocol.hpp"
#include "topology/rank_nics.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// The allreduces of one algorithm on a cluster.
struct Reducer {
  Plan plan;               // for the largest
  std::string bottleneck;  // of that one
  std::function<Seconds(Count)> time;
};

Reducer vendor_reducer(const std::string& algorithm, const Cluster& cluster, Count largest, int size) {
  const VendorRun run = vendor_run(algorithm, cluster, bytes_of(largest, size));
  const std::string bottleneck =
      bottleneck_text(vendor_simulation(run, bytes_of(largest, size)), Router(run.view));
  return {run.plan, fmt::format("{} ({} chooses {})", bottleneck, algorithm, run.choice),
          [&, algorithm, size](Count count) {
            const Bytes payload = bytes_of(count, size);
            return vendor_time(vendor_run(algorithm, cluster, payload), payload);
          }};
}

Reducer reducer_of(const std::string& algorithm, const Cluster& cluster, const Router& router, Count largest,
                   ElementSizes sizes, const PlanConstraints& constraints, const SimulationOptions& options) {
  if (is_vendor(algorithm)) return vendor_reducer(algorithm, cluster, largest, sizes.payload);
  const bool in_network = algorithm == kInNetwork;
  if (in_network) sizes = sizes.payload;  // switches keep what is exact to themselves
  const auto choose = [&, sizes, in_network, options](Count count) {
    return in_network ? choose_in_network(cluster, router, count, sizes, constraints, options)
                      : choose_plan(modelled_problem(algorithm, cluster, count, sizes), cluster, router,
                                    constraints, options);
  };
  SimulatedPlan chosen = choose(largest);
  const bool each_planned = cluster.ranks() <= kMostPlannedForEach;
  const auto time = [&, choose, largest, each_planned, sizes, in_network, options, plan = chosen.plan,
                     of_largest = chosen.simulation.time](Count count) {
    if (count == largest) return of_largest;
    if (each_planned) return choose(count).simulation.time;
    const Simulation of_largest_plan =
        in_network ? simulate_in_network(plan, cluster, router, count, sizes, options)
                   : simulate(make_schedule(plan, cluster.ranks(), count, sizes.payload), cluster, router,
                              sizes, options);
    return of_largest_plan.time;
  };
  return {std::move(chosen.plan), bottleneck_text(chosen.simulation, router), time};
}

/// What NCCL's sockets carry over one port, however fast it is: 10.7 to 41 of 100 Gb/s (nccl#209), 38
/// (nccl#398).
constexpr Bandwidth kSlowSockets = gigabits_per_second(10.7);
constexpr Bandwidth kFastSockets = gigabits_per_second(41);
constexpr std::string_view kSockets =
    "; NCCL's sockets carry 10.7 to 41 Gb/s a port (nccl#209 and #398, hosts of 8 V100 at 100 Gb/s)";

/// Without GPUDirect messages pass through the host's memory: 6 of 12.5 GB/s (nccl#465).
constexpr double kStaged = 0.35;
constexpr std::string_view kMayBeStaged =
    "; not every GPU shares a PCIe switch with a NIC, so GPUDirect may not be used, and without it a port of "
    "12.5 GB/s "
    "carries 6 (nccl#465), 35 to 65 % are taken";

/// Whether every GPU hangs under one PCIe switch with a NIC, as GPUDirect wants it (NCCL_NET_GDR_LEVEL's
/// default).
bool gpus_are_near_nics(const Machine& host) {
  const std::vector<int> nics = usable_nics(host);
  const auto switch_of = [&](DeviceId device) {
    for (const Link& link : host.links) {
      if (link.from == device && link.to.kind == DeviceKind::pci_switch) return link.to.index;
      if (link.to == device && link.from.kind == DeviceKind::pci_switch) return link.from.index;
    }
    return -1;
  };
  std::set<int> switches;
  for (const int nic : nics) switches.insert(switch_of({DeviceKind::nic, nic}));
  for (int gpu = 0; gpu < static_cast<int>(host.gpus.size()); ++gpu) {
    const int own = switch_of({DeviceKind::gpu, gpu});
    if (own < 0 || !switches.contains(own)) return false;
  }
  return true;
}

/// Over NVLink-C2C without GPUDirect: two hosts of one GH200 and 4 x 200 Gb/s (nccl#1579).
constexpr double kStagedByC2c = 0.797;
constexpr std::string_view kMayBeStagedByC2c =
    "; GPUs reach the NICs by NVLink-C2C and their processor: two GH200 reached 79.7 of 100 GB/s without "
    "GPUDirect, and 96.1 with it (nccl#1579), which NCCL uses there from 2.27 on (NCCL_NET_GDR_C2C, "
    "src/graph/paths.cc)";

/// Whether NVLink-C2C joins every GPU to its processor: what passes through the host's memory then crosses no
/// PCIe but that of the NIC.
bool gpus_are_on_c2c(const Machine& host) {
  std::set<int> joined;
  for (const Link& link : host.links) {
    if (link.kind != LinkKind::c2c) continue;
    for (const DeviceId end : {link.from, link.to})
      if (end.kind == DeviceKind::gpu) joined.insert(end.index);
  }
  return !host.gpus.empty() && joined.size() == host.gpus.size();
}

/// Between hosts a message may have to pass through a host's memory, and through its sockets. `rate` is what
/// the range is a part of.
void limit_by_host(CostRange& range, const Cluster& cluster, Bandwidth rate) {
  const Machine& host = cluster.host(0);
  const std::vector<int> nics = usable_nics(host);
  if (cluster.domain_count() == 1 || nics.empty()) return;
  const Nic& nic = host.nics[static_cast<std::size_t>(nics.front())];
  if (protocol_of(nic) == NicProtocol::ethernet) {
    // What the NICs carry together may be less than their rates, where their slots are narrower.
    const double carried = std::min(rate.value, static_cast<double>(nics.size()) * nic.bandwidth().value);
    const double sockets = static_cast<double>(nics.size()) / carried;
    range.least = std::min(range.least, kFastSockets.value * sockets);
    range.most = std::min(range.most, kSlowSockets.value * sockets);
    range.source += kSockets;
  } else if (gpus_are_on_c2c(host)) {
    range.most = std::min(range.most, kStagedByC2c);
    range.source += kMayBeStagedByC2c;
  } else if (!gpus_are_near_nics(host)) {
    range.most = std::min(range.most, kStaged);
    range.source += kMayBeStaged;
  }
}

/// The part of the links' rate that others' allreduces reached there, and that rate.
struct UsableNetwork {
  CostRange range;
  std::optional<Bandwidth> rate;
};

std::optional<UsableNetwork> network_of(const Cluster& cluster, const std::string& algorithm) {
  auto interval = expected_interval(cluster, Collective::allreduce, algorithm, kLargePayload);
  const bool own = interval.has_value();
  // Patterns of ours without figures of their own reach of the links what rings do.
  if (!own) interval = expected_interval(cluster, Collective::allreduce, "ring", kLargePayload);
  if (!interval) return std::nullopt;
  UsableNetwork result;
  CostRange& range = result.range;
  range.cost = &StepCosts::network;
  range.name = fmt::format("part of the rate of {} that allreduces reach", interval->link);
  range.least = std::min(1.0, interval->high.value / interval->rate.value);
  range.most = std::min(1.0, interval->low.value / interval->rate.value);
  range.source = interval->rests_on;
  limit_by_host(range, cluster, interval->rate);
  range.middle = std::sqrt(range.least * range.most);
  range.text = fmt::format("{:.3g} to {:.3g} %, {:.3g} in the middle", 100 * range.most, 100 * range.least,
                           100 * range.middle);
  if (own) result.rate = interval->rate;
  return result;
}

/// Collectives of activations, and those inside a host where others go between hosts.
void add_of_strategy(StepRanges& known, const std::string& algorithm, const Cluster& cluster) {
  known.ranges.push_back(call_range());
  const int domain = ranks_of_domain(cluster);
  if (cluster.domain_count() == 1 || domain == 1) return;
  std::optional<UsableNetwork> inside = network_of(with_ranks(cluster, domain), algorithm);
  if (!inside) return;
  inside->range.cost = &StepCosts::inside;
  known.usable_inside = inside->rate;
  known.ranges.push_back(std::move(inside->range));
}

CostSetting setting_of(const Cluster& cluster) {
  const Machine& host = cluster.host(0);
  CostSetting setting;
  if (const GpuPeak* peak = find_gpu_peak(host.gpus.front().model)) setting.generation = peak->generation;
  setting.hosts = cluster.host_count();
  setting.nics = rails_of(host);
  return setting;
}

}  // namespace

Bytes bytes_of(Count count, int element_size) {
  return {static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(element_size)};
}

Count largest_of(const std::vector<Bucket>& buckets) {
  Count largest = 0;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.elements);
  return largest;
}

StepRanges step_ranges(const ScalingCase& scaling, const std::string& algorithm, const Cluster& cluster) {
  StepRanges known;
  if (scaling.computing_range) known.ranges.push_back(*scaling.computing_range);
  if (scaling.spread) {
    known.ranges.push_back({&StepCosts::network, "the calibration's error", 1 + *scaling.spread, 1,
                            1 / (1 + *scaling.spread),
                            fmt::format("{:.1f} % of an allreduce's time", 100 * *scaling.spread),
                            "95 % of the times that the calibration was checked on, or fitted to"});
  }
  if (scaling.framework == nullptr || cluster.ranks() == 1) return known;
  for (CostRange& range : cost_ranges(*scaling.framework, setting_of(cluster))) {
    const bool stated = range.cost == &StepCosts::variation && scaling.conditions.jitter;
    if (!stated) known.ranges.push_back(std::move(range));
  }
  if (scaling.waits_for_input) known.ranges.push_back(input_range());
  if (scaling.spread) return known;
  if (std::optional<UsableNetwork> network = network_of(cluster, algorithm)) {
    known.usable = network->rate;
    known.ranges.push_back(std::move(network->range));
  }
  if (scaling.strategy && !scaling.strategy->is_plain()) add_of_strategy(known, algorithm, cluster);
  return known;
}

StepModel::StepModel(const ScalingCase& scaling, const std::string& algorithm,
                     const PlanConstraints& constraints, int gpus)
    : scaling_(scaling), gpus_(gpus) {
  const Cluster cluster = with_ranks(scaling.machine, gpus);
  const Router router(cluster);
  const ElementSizes sizes(scaling.kind, ReduceOp::avg, scaling.partials);
  element_size_ = sizes.payload;
  nodes_ = cluster.host_count();
  buckets_ = make_buckets(scaling.model, scaling.policy, element_size_);
  const Reducer reducer = reducer_of(algorithm, cluster, router, largest_of(buckets_), sizes, constraints,
                                     {.costs = scaling.conditions.costs});
  plan_ = reducer.plan;
  bottleneck_ = reducer.bottleneck;
  std::map<Count, Seconds> times;  // many gradients of a model are equally large
  for (const Bucket& bucket : buckets_) {
    const auto [at, added] = times.try_emplace(bucket.elements);
    if (added) at->second = reducer.time(bucket.elements);
    simulated_.push_back(at->second);
  }
  known_ = step_ranges(scaling, algorithm, cluster);
}

Seconds copies_of(const ScalingCase& scaling, const StepCosts& costs) {
  const Bandwidth memory = scaling.machine.host(0).gpus.front().memory_bandwidth;
  const double tensors = costs.tensor_s * static_cast<double>(scaling.model.gradients.size());
  const double bytes =
      costs.accesses * size_of(scaling.kind) * static_cast<double>(scaling.model.total_elements());
  return {tensors + (memory.known() ? bytes / (costs.copy_share * memory.value) : 0)};
}

StepCompute StepModel::computing(const StepCosts& costs) const {
  const double copies = copies_of(scaling_, costs).value;
  // Half of the copies come beside the backward pass, into the buckets; the others after the last allreduce.
  const double factor =
      costs.computing * (costs.variation > 0 ? slowest_quantile(costs.variation, gpus_, 0.5) : 1);
  const StepCompute& stated = scaling_.compute;
  return {factor * stated.forward, factor * stated.backward + Seconds{copies / 2},
          factor * stated.optimizer + Seconds{copies / 2}};
}

Seconds StepModel::allreduce(std::size_t bucket, const StepCosts& costs) const {
  const Seconds simulated = simulated_[bucket];
  if (!known_.usable) return Seconds{costs.ramp_s} + (1 / costs.network) * simulated;
  const double payload = static_cast<double>(bytes_of(buckets_[bucket].elements, element_size_).value);
  const double crossing = 2.0 * (gpus_ - 1) / gpus_ * payload;
  return std::max(simulated, Seconds{costs.ramp_s + crossing / (costs.network * known_.usable->value)});
}

StepTime StepModel::time(const StepCosts& costs) const {
  const StepCompute compute = computing(costs);
  const Interplay interplay{Seconds{costs.launch_s}, costs.slowdown};
  const Step step = run_step(
      compute, buckets_, scaling_.overlap, [&](std::size_t i) { return allreduce(i, costs); }, interplay);
  StepTime result =
      with_stragglers(scaling_.conditions, {compute, buckets_, scaling_.overlap, step, interplay}, gpus_);
  for (Seconds* part : {&result.total, &result.exposed}) *part = (1 / (1 - costs.input)) * *part;
  add_feed(scaling_.conditions, result, limit_of(step), static_cast<double>(gpus_) * scaling_.batch, nodes_);
  return result;
}

double StepModel::throughput(const StepCosts& costs) const {
  return static_cast<double>(gpus_) * scaling_.batch / time(costs).total.value;
}

Interval interval_of(const std::vector<CostRange>& ranges,
                     const std::function<double(const StepCosts&)>& figure) {
  const StepCosts middle = middle_of(ranges);
  Interval result;
  result.middle = figure(middle);
  double above = 0;
  double below = 0;
  double furthest = 0;
  for (const CostRange& range : ranges) {
    const auto moved = [&](double value) {
      StepCosts costs = middle;
      costs.*range.cost = value;
      return figure(costs) - result.middle;
    };
    // Either end may be the better one: where computing takes longer, communication is a smaller part.
    const double at_least = moved(range.least);
    const double at_most = moved(range.most);
    const double up = std::max({0.0, at_least, at_most});
    const double down = std::max({0.0, -at_least, -at_most});
    above += up * up;
    below += down * down;
    if (up + down > furthest) {
      furthest = up + down;
      result.widest = range.name;
    }
  }
  result.low = std::max(0.0, result.middle - std::sqrt(below));
  result.high = result.middle + std::sqrt(above);
  return result;
}

}  // namespace polyring
