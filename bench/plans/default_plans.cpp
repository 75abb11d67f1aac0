#include "bench/plans/default_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "bench/record/calibration_file.hpp"
#include "bench/record/record.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/tuning.hpp"
#include "simulation/cut.hpp"

namespace polyring {
namespace {

/// Large enough that a message's cost does not count, small enough to stay in a core's cache, and it is
/// combined only when all of it is there. No price knows that; see docs/performance.md.
constexpr Bytes kLongestMessage{1 << 20};
/// Where no price tells what a single chunk, which overlaps with nothing, would cost.
constexpr Bytes kUnpricedMessage{56 << 10};

/// Up to here steps count and bytes do not: in a host one step to everybody beats two of less, since all that
/// it sends is copied once and nobody waits until others have read it; between hosts log2 n steps of
/// everything beat twice as many of less. See docs/performance.md.
constexpr Bytes kTiny{2 << 10};
/// Up to here messages count: between hosts 2·log2 n beat the 2(n − 1) of rings, and a host's ranks leave
/// them to one of theirs.
constexpr Bytes kSmall{16 << 10};

/// Steps of everybody to everybody among more ranks would take seconds to price.
constexpr int kMostPricedRanks = 1024;

std::string pattern_between_hosts(Bytes payload) {
  return payload <= kTiny ? "doubling" : payload <= kSmall ? "halving" : "ring";
}

/// For each dimension of a multi-ring: what fits the memory or the wires that it runs over.
std::vector<std::string> default_patterns(const std::vector<int>& dims, const MpiWorld& world,
                                          const Transport& transport, Bytes payload) {
  const int per_host = world.ranks_per_node();
  const std::string where_they_meet = world.nodes() > 1 && payload <= kSmall ? "star"
                                      : dims.size() == 1 && payload <= kTiny ? "one-shot"
                                                                             : "direct";
  std::vector<std::string> patterns;
  int stride = 1;
  for (const int dim : dims) {
    stride *= dim;
    const bool in_host = per_host > 0 && per_host % stride == 0;
    // Either all ranks meet the others of their host, or none does.
    const Rank first = in_host ? world.rank() / per_host * per_host : 0;
    const bool meets = in_host && dim > 1 && transport.meets(world.rank() == first ? first + 1 : first);
    patterns.push_back(meets ? where_they_meet : in_host ? "ring" : pattern_between_hosts(payload));
  }
  return patterns;
}

/// The longest message between hosts that a rank of the first host sends, as a part of a chunk; 0 when there
/// is none.
double longest_message(Plan plan, const MpiWorld& world) {
  constexpr Count kCount = 1 << 20;
  plan.chunk = {};
  const Schedule schedule = make_schedule(plan, world.size(), kCount, 1);
  const int per_host = std::max(1, world.ranks_per_node());
  Count longest = 0;
  std::vector<Transfer> sends;
  for (Rank rank = 0; rank < per_host; ++rank) {
    for (int stage = 0; stage < stage_count(schedule.lanes.front()); ++stage) {
      for (int step = 0; step < step_count(schedule.lanes.front(), stage); ++step) {
        sends.clear();
        append_sends(schedule, {}, stage, step, rank, sends);
        for (const Transfer& send : sends)
          if (send.destination >= per_host) longest = std::max(longest, send.slice.count);
      }
    }
  }
  return static_cast<double>(longest) / static_cast<double>(stream_slice(schedule, {}).count);
}

/// At least as large as makes kMostUsefulChunks of the payload.
Bytes useful_chunk(Bytes chunk, Bytes payload) {
  return std::max(chunk, Bytes{payload.value / kMostUsefulChunks});
}

/// The largest whose messages between hosts are no longer than `message`; 0 where there are none.
Bytes longest_chunk(const Plan& plan, const MpiWorld& world, Bytes message, Bytes payload) {
  const double longest = world.nodes() == 1 ? 0 : longest_message(plan, world);
  if (longest == 0) return {};
  const auto of_messages = static_cast<std::uint64_t>(static_cast<double>(message.value) / longest);
  return useful_chunk({of_messages}, payload);
}

/// What links are taken to do of which the topology says nothing; only cuts follow from it. Memory as between
/// the processes of docs/performance.md, latencies as of the presets' InfiniBand and Ethernet, the rest a
/// PCIe 3.0 x16 and a bus between sockets as NCCL has them (docs/model.md).
Calibration typical_links(const Machine& host) {
  const bool infiniband = std::ranges::any_of(
      host.nics, [](const Nic& nic) { return nic.up() && nic.kind == NicKind::infiniband; });
  Calibration typical;
  typical.links = {{LinkClass::memory, microseconds(0.2), gigabytes_per_second(10), 1, {}, {}},
                   {LinkClass::pcie, {}, gigabytes_per_second(12), 1, {}, {}},
                   {LinkClass::socket_bus, {}, gigabytes_per_second(10), 1, {}, {}},
                   {LinkClass::network, microseconds(infiniband ? 1.7 : 15), {}, 1, {}, {}}};
  return typical;
}

/// Nothing where links cannot be told apart, or it is not known how fast one of them is.
std::optional<Cluster> typical_cluster(Cluster hosts, const MpiWorld& world) {
  try {
    Cluster cluster = with_ranks_of(std::move(hosts), placement_of(world), "this job");
    cluster = calibrated(cluster, typical_links(cluster.host(0)));
    if (Router(cluster).unknown_speed().empty()) return cluster;
  } catch (const Error&) {
    // Ranks that are not numbered host after host, or no NIC that is up.
  }
  return std::nullopt;
}

bool knows_nics(const Cluster& cluster) {
  return std::ranges::all_of(cluster.groups, [](const HostGroup& group) {
    return std::ranges::all_of(group.machine.nics,
                               [](const Nic& nic) { return !nic.up() || nic.bandwidth().known(); });
  });
}

Cluster calibrated_cluster(const std::string& file, Cluster hosts, const MpiWorld& world) {
  const Calibration calibration = read_calibration(file).calibration;
  Cluster cluster = with_ranks_of(std::move(hosts), placement_of(world), "this job");
  cluster = calibrated(std::move(cluster), calibration);
  const Router router(cluster);
  // What was fitted to messages between hosts has the ways to their NICs in it, but for the rate of a NIC of
  // which the fit knows a share alone.
  const bool network_fitted = calibration.find(LinkClass::network) != nullptr && knows_nics(cluster);
  const std::string unknown = network_fitted ? router.unknown_speed_in_hosts() : router.unknown_speed();
  if (!unknown.empty()) {
    usage_error(
        "'{}' does not say how fast messages between these ranks are: {}; calibrate on runs that cross "
        "the same kinds of links, or leave --calibration out",
        file, unknown);
  }
  return cluster;
}

/// Ranks that carry out different schedules would wait for each other for ever, or be wrong.
void check_agreement(const Plan& plan, const MpiWorld& world) {
  const auto own = static_cast<std::int64_t>(std::hash<std::string>{}(to_text(plan)));
  const bool differs = world.broadcast(own) != own;
  if (world.sum(differs ? 1 : 0) == 0) return;
  throw Error(
      ExitCode::internal,
      fmt::format("the ranks do not agree about a plan; this one has {}. Please report this as a fault",
                  to_text(plan)));
}

}  // namespace

Plan plain_plan(const std::string& algorithm, const PlanConstraints& constraints, const MpiWorld& world) {
  Plan plan{algorithm, constraints.dims, constraints.patterns, 1, {}};
  const int in_host = world.ranks_per_node();
  if (plan.dims.empty() && in_host > 1 && world.nodes() > 1) plan.dims = {in_host, world.nodes()};
  if (plan.dims.empty()) plan.dims = {world.size()};
  return constrained(std::move(plan), constraints);
}

DefaultPlans::DefaultPlans(const std::string& calibration, const MpiWorld& world) : world_(world) {
  if (calibration.empty() && (world.nodes() == 1 || world.size() > kMostPricedRanks)) return;
  Cluster hosts = host_memory_cluster(world);
  on_root(world, [&] {
    if (!calibration.empty() && world.size() == 1) {
      read_calibration(calibration);  // is refused if it is none; one rank sends nothing that has a price
    } else if (!calibration.empty()) {
      cluster_ = calibrated_cluster(calibration, std::move(hosts), world);
    } else {
      cluster_ = typical_cluster(std::move(hosts), world);
    }
  });
  priced_ = world.broadcast(cluster_ ? 1 : 0) == 1;
  if (priced_) calibration_ = calibration;
}

Plan DefaultPlans::plan_for(const std::string& algorithm, const PlanConstraints& constraints,
                            const WorldTransport& transport, Count count, ElementSizes sizes) const {
  const Bytes payload{static_cast<std::uint64_t>(count * sizes.payload)};
  const bool tuned = algorithm == kTunedAlgorithm;
  Plan plan = plain_plan(algorithm, constraints, world_);
  if (tuned && plan.patterns.empty())
    plan.patterns = default_patterns(plan.dims, world_, *transport.transport, payload);
  check_plan(plan, world_.size());
  check_agreement(plan, world_);
  const bool priced = tuned && priced_ && (constraints.lanes == 0 || constraints.chunk.value == 0);
  Bytes message = priced ? kLongestMessage : kUnpricedMessage;
  if (transport.unasked.value > 0) message = std::min(message, transport.unasked);
  const Bytes longest = longest_chunk(plan, world_, message, payload);
  if (priced) return cut(std::move(plan), constraints, longest, count, sizes);
  // Nothing overlaps with a single meeting.
  const bool one_meeting =
      tuned && world_.nodes() == 1 && plan.patterns.size() == 1 && plan.patterns.front() != "ring";
  if (!one_meeting && constraints.chunk.value == 0)
    plan.chunk = longest.value > 0 ? longest : useful_chunk(kLongestMessage, payload);
  return plan;
}

Plan DefaultPlans::cut(Plan plan, const PlanConstraints& constraints, Bytes longest_chunk, Count count,
                       ElementSizes sizes) const {
  on_root(world_, [&] {
    plan =
        cheapest_cut(std::move(plan), constraints, longest_chunk, *cluster_, Router(*cluster_), count, sizes);
  });
  plan.lanes = static_cast<int>(world_.broadcast(plan.lanes));
  plan.chunk = {static_cast<std::uint64_t>(world_.broadcast(static_cast<std::int64_t>(plan.chunk.value)))};
  return plan;
}

}  // namespace polyring
