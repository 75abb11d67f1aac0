#include "simulation/flow_writer.hpp"

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
  const int first = static_cast<int>(workload_.uses.size());
  for (const Crossing& crossing : route)
    workload_.uses.push_back({own_index(crossing.resource), crossing.share});
  workload_.flows.push_back({from, to, false, connection(lane, from, to), bytes, latency.value, first,
                             static_cast<int>(workload_.uses.size())});
}

void FlowWriter::add_reduction(Rank rank, double bytes, int resource) {
  const int first = static_cast<int>(workload_.uses.size());
  workload_.uses.push_back({resource, 1});
  workload_.flows.push_back({rank, rank, true, connection(0, rank, rank), bytes, 0, first, first + 1});
}

int FlowWriter::connection(int lane, Rank from, Rank to) {
  const auto ranks = static_cast<std::uint64_t>(workload_.actors);
  const std::uint64_t key =
      (static_cast<std::uint64_t>(lane) * ranks + static_cast<std::uint64_t>(from)) * ranks +
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
