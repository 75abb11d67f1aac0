#include "simulation/switch_tree.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace polyring {
namespace {

/// Makes a round of the flows that `add` adds.
void add_round(Workload& workload, const auto& add) {
  Round round{static_cast<int>(workload.flows.size()), 0, 1};
  add();
  round.last_flow = static_cast<int>(workload.flows.size());
  workload.rounds.push_back(round);
}

}  // namespace

bool uses_switches(const Schedule& schedule) {
  return std::ranges::any_of(schedule.lanes, [](const Lane& lane) {
    return std::ranges::find(lane.stages, StageKind::in_switches, &Stage::kind) != lane.stages.end();
  });
}

SwitchTree::SwitchTree(const Cluster& cluster, const Router& router, const Costs& costs)
    : cluster_(cluster), router_(router), costs_(costs) {
  if (!cluster.fabric.pods.empty()) {
    usage_error(
        "in-network is modelled for leaf switches under one spine, and these are in pods; leave it out, or "
        "the pods out of the fabric");
  }
  const int per_leaf = cluster.fabric.hosts_per_leaf;
  if (per_leaf > 0) leaves_ = (cluster.host_count() + per_leaf - 1) / per_leaf;
}

int SwitchTree::leaf_of(int rank) const {
  return leaves_ == 1 ? 0 : cluster_.place(rank).host / cluster_.fabric.hosts_per_leaf;
}

void SwitchTree::add_rounds(int lane, std::span<const double> held, Workload& workload,
                            FlowWriter& writer) const {
  const auto of_domain = held.first(static_cast<std::size_t>(cluster_.ranks_per_domain()));
  const double chunk = std::accumulate(of_domain.begin(), of_domain.end(), 0.0);
  add_round(workload, [&] { add_ranks(lane, held, true, writer); });
  if (leaves_ > 1) {
    add_round(workload, [&] { add_leaves(lane, chunk, true, writer); });
    add_round(workload, [&] { add_leaves(lane, chunk, false, writer); });
  }
  add_round(workload, [&] { add_ranks(lane, held, false, writer); });
}

void SwitchTree::add_ranks(int lane, std::span<const double> held, bool up, FlowWriter& writer) const {
  const int ranks = static_cast<int>(held.size());
  const Seconds fixed = 0.5 * cluster_.fabric.latency + costs_.message_between_hosts;
  std::vector<Crossing> route;
  for (int rank = 0; rank < ranks; ++rank) {
    const double bytes = held[static_cast<std::size_t>(rank)];
    if (bytes == 0) continue;
    route.clear();
    const Seconds latency = fixed + (up ? router_.leave(rank, route) : router_.enter(rank, route));
    const int leaf = ranks + leaf_of(rank);
    writer.add_message(lane, up ? rank : leaf, up ? leaf : rank, bytes, latency, route);
  }
}

void SwitchTree::add_leaves(int lane, double bytes, bool up, FlowWriter& writer) const {
  const int first = cluster_.ranks();
  const int root = first + leaves_;
  std::vector<Crossing> route;
  for (int leaf = 0; leaf < leaves_; ++leaf) {
    route.clear();
    router_.cross_leaf(leaf * cluster_.fabric.hosts_per_leaf, up, route);
    writer.add_message(lane, up ? first + leaf : root, up ? root : first + leaf, bytes,
                       0.5 * cluster_.fabric.spine_latency, route);
  }
}

}  // namespace polyring
