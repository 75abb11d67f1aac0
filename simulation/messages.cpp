#include "simulation/messages.hpp"

#include "simulation/flow_writer.hpp"

namespace polyring {

Simulation simulate(std::span<const Message> messages, const Cluster& cluster, const Router& router,
                    const Costs& costs) {
  Workload workload;
  workload.actors = cluster.ranks();
  const EqualRanks none(cluster.ranks());
  FlowWriter writer(workload, cluster, router, costs, none);
  for (const Message& message : messages) writer.add_message(0, message.from, message.to, message.bytes);
  workload.rounds = {{0, static_cast<int>(workload.flows.size()), 1}};
  workload.courses = {{1, 0, 1}};
  return simulate(std::move(workload), SimulationOptions{});
}

}  // namespace polyring
