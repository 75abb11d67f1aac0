#include "simulation/messages.hpp"

#include <map>
#include <utility>
#include <vector>

#include "simulation/engine.hpp"
#include "simulation/symmetry.hpp"

namespace polyring {

Seconds simulate(std::span<const Message> messages, const Cluster& cluster, const Router& router,
                 const Costs& costs) {
  Workload workload;
  workload.actors = cluster.ranks();
  std::map<ResourceId, int> own;
  std::map<std::pair<int, int>, int> connections;
  std::vector<ResourceId> route;
  for (const Message& message : messages) {
    route.clear();
    const Seconds latency = router.route(message.from, message.to, route);
    const bool in_host = cluster.place(message.from).host == cluster.place(message.to).host;
    const Seconds overhead = in_host ? costs.message_in_host : costs.message_between_hosts;
    const int first = static_cast<int>(workload.uses.size());
    for (const ResourceId resource : route) {
      const auto [at, added] = own.try_emplace(resource, static_cast<int>(own.size()));
      if (added) {
        workload.capacities.push_back(router.bandwidth(resource).value);
        workload.names.push_back(resource);
      }
      workload.uses.push_back({at->second, 1});
    }
    const auto connection =
        connections.try_emplace({message.from, message.to}, static_cast<int>(connections.size())).first;
    workload.flows.push_back({message.from, message.to, false, connection->second, message.bytes,
                              (latency + overhead).value, first, static_cast<int>(workload.uses.size())});
  }
  workload.connections = static_cast<int>(connections.size());
  workload.rounds = {{0, static_cast<int>(workload.flows.size()), 1}};
  workload.courses = {{1, 0, 1}};
  return {run(by_classes(without_slack(std::move(workload))), {})->seconds};  // no limit is set
}

}  // namespace polyring
