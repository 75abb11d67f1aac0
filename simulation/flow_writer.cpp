#include "simulation/flow_writer.hpp"

#include <algorithm>
#include <cassert>

#include "base/index.hpp"

namespace polyring {

void FlowWriter::add_message(int lane, Rank from, Rank to, double bytes) {
  route_.clear();
  const Seconds latency = router_.route(from, to, route_);
  const bool in_host = cluster_.in_one_domain(cluster_.place(from).host, cluster_.place(to).host);
  const Seconds message = in_host ? costs_.message_in_host : costs_.message_between_hosts;
  add_message(lane, from, to, bytes, latency + message, route_);
}

void FlowWriter::add_message(int lane, int from, int to, double bytes, Seconds latency,
                             std::span<const Crossing> route) {
  const std::size_t first = workload_.uses.size();
  for (const Crossing& crossing : route) add_use(crossing, first);
  workload_.flows.push_back({equal_.class_of(from), equal_.class_of(to), false, connection(lane, from, to),
                             bytes, latency.value, static_cast<int>(first),
                             static_cast<int>(workload_.uses.size())});
}

/// A flow may cross several resources of one class.
void FlowWriter::add_use(const Crossing& crossing, std::size_t first_use) {
  const EqualRanks::Met met = equal_.met(crossing.resource);
  const int resource = own_index(met.first);
  const double weight = crossing.share * met.times;
  const auto uses = std::span(workload_.uses).subspan(first_use);
  const auto same = std::ranges::find(uses, resource, &Use::resource);
  if (same == uses.end()) {
    workload_.uses.push_back({resource, weight});
  } else {
    same->weight += weight;
  }
}

void FlowWriter::join_equal(std::size_t first) {
  std::vector<Flow>& flows = workload_.flows;
  std::vector<Use>& uses = workload_.uses;
  const auto uses_of = [&](const Flow& flow) {
    return std::span(uses).subspan(index(flow.first_use), index(flow.last_use - flow.first_use));
  };
  std::vector<int> times;  // by joined flow
  for (std::size_t next = first; next < flows.size(); ++next) {
    Flow flow = flows[next];
    const auto joined = std::span(flows).subspan(first, times.size());
    const auto equal = std::ranges::find_if(joined, [&](const Flow& other) {
      return other.destination == flow.destination && other.bytes == flow.bytes &&
             other.latency == flow.latency && std::ranges::equal(uses_of(other), uses_of(flow));
    });
    if (equal != joined.end()) {
      ++times[index(equal - joined.begin())];
      continue;
    }
    const int first_use = joined.empty() ? flow.first_use : joined.back().last_use;
    std::ranges::copy(uses_of(flow), uses.begin() + first_use);
    flow.last_use += first_use - flow.first_use;
    flow.first_use = first_use;
    flows[first + times.size()] = flow;
    times.push_back(1);
  }
  flows.resize(first + times.size());
  uses.resize(flows.empty() ? 0 : index(flows.back().last_use));
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (Use& use : uses_of(flows[first + i])) use.weight *= times[i];
  }
}

void FlowWriter::add_reduction(int actor, double bytes, int resource) {
  const int first = static_cast<int>(workload_.uses.size());
  workload_.uses.push_back({resource, 1});
  workload_.flows.push_back({actor, actor, true, connection(0, actor, actor), bytes, 0, first, first + 1});
}

int FlowWriter::connection(int lane, Rank from, Rank to) {
  // 24 bits for each of the two actors, and 16 for the lane.
  constexpr int kBits = 24;
  assert(from >= 0 && from < 1 << kBits && to >= 0 && to < 1 << kBits && lane >= 0 && lane < 1 << 16);
  const std::uint64_t key =
      ((static_cast<std::uint64_t>(lane) << kBits | static_cast<std::uint64_t>(from)) << kBits) |
      static_cast<std::uint64_t>(to);
  const auto [at, added] = connections_.try_emplace(key, workload_.connections);
  if (added) ++workload_.connections;
  return at->second;
}

/// Only resources that something crosses are the workload's.
int FlowWriter::own_index(ResourceId resource) {
  const auto [at, added] = own_.try_emplace(resource, static_cast<int>(workload_.capacities.size()));
  if (added) {
    workload_.capacities.push_back(router_.bandwidth(resource).value);
    workload_.names.push_back(resource);
  }
  return at->second;
}

}  // namespace polyring
