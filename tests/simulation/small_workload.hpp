// Workloads of a few flows, where it is plain what must happen.
#pragma once

#include <utility>
#include <vector>

#include "simulation/workload.hpp"

namespace polyring::testing {

/// Resources of these capacities (bytes/s), and one course of one chunk; to which flows are added.
inline Workload small_workload(int actors, std::vector<double> capacities) {
  Workload result;
  result.actors = actors;
  result.connections = static_cast<int>(capacities.size());
  result.names.assign(capacities.size(), 0);
  result.capacities = std::move(capacities);
  result.courses = {{1, 0, 0}};
  return result;
}

/// A round of one flow over one resource, at the end of the last course.
inline void add_round(Workload& workload, int from, int to, int connection, double bytes, int resource,
                      double latency = 0) {
  const int use = static_cast<int>(workload.uses.size());
  const int flow = static_cast<int>(workload.flows.size());
  workload.uses.push_back({resource, 1});
  workload.flows.push_back({from, to, false, connection, bytes, latency, use, use + 1});
  workload.rounds.push_back({flow, flow + 1, 1});
  workload.courses.back().last_round = static_cast<int>(workload.rounds.size());
}

}  // namespace polyring::testing
