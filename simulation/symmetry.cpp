#include "simulation/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

using Colour = std::uint64_t;

/// Vigna's splitmix64 as a mixing function: "Fast splittable pseudorandom number generators", OOPSLA 2014.
Colour mixed(Colour value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Colour joined(Colour a, Colour b) { return mixed(a ^ (b + 0x632be59bd9b4e019)); }

/// Refines colours until no class falls apart any more.
class Refinement {
 public:
  explicit Refinement(const Workload& workload)
      : workload_(workload),
        actors_(index(workload.actors)),
        connections_(index(workload.connections)),
        resources_(workload.capacities.size()) {
    for (std::size_t i = 0; i < resources_.size(); ++i) {
      resources_[i] = mixed(std::bit_cast<Colour>(workload.capacities[i]));
    }
    round_of_.resize(workload.flows.size());
    for (std::size_t round = 0; round < workload.rounds.size(); ++round) {
      const Round& at = workload.rounds[round];
      std::fill(round_of_.begin() + at.first_flow, round_of_.begin() + at.last_flow, static_cast<int>(round));
    }
  }

  /// False when it takes more than so many turns, as when a difference travels far around a ring.
  bool run() {
    constexpr int kMostTurns = 64;
    std::size_t classes = 0;
    for (int turn = 0; turn < kMostTurns; ++turn) {
      refine();
      const std::size_t now = count(actors_) + count(connections_) + count(resources_);
      if (now == classes) return true;
      classes = now;
    }
    return false;
  }

  const std::vector<Colour>& actors() const { return actors_; }
  const std::vector<Colour>& connections() const { return connections_; }
  const std::vector<Colour>& resources() const { return resources_; }

 private:
  void refine() {
    std::vector<Colour> actors(actors_.size());
    std::vector<Colour> connections(connections_.size());
    std::vector<Colour> resources(resources_.size());
    for (std::size_t i = 0; i < round_of_.size(); ++i) {
      const Flow& flow = workload_.flows[i];
      Colour colour = joined(static_cast<Colour>(round_of_[i]), std::bit_cast<Colour>(flow.bytes));
      colour = joined(colour, std::bit_cast<Colour>(flow.latency));
      colour = joined(joined(colour, actors_[index(flow.source)]), actors_[index(flow.destination)]);
      colour = joined(colour, connections_[index(flow.connection)]);
      Colour crossed = 0;
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        crossed += joined(1, resources_[index(workload_.uses[index(use)].resource)]);
      }
      colour = joined(colour, crossed);
      // Sums, since the order in which flows are listed means nothing.
      actors[index(flow.source)] += joined(colour, 1);
      actors[index(flow.destination)] += joined(colour, 2);
      connections[index(flow.connection)] += joined(colour, 4);
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        resources[index(workload_.uses[index(use)].resource)] += joined(colour, 3);
      }
    }
    join(actors_, actors);
    join(connections_, connections);
    join(resources_, resources);
  }

  static void join(std::vector<Colour>& colours, const std::vector<Colour>& met) {
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = joined(colours[i], met[i]);
  }
  static std::size_t count(const std::vector<Colour>& colours) {
    return std::unordered_set<Colour>(colours.begin(), colours.end()).size();
  }

  const Workload& workload_;
  std::vector<Colour> actors_;
  std::vector<Colour> connections_;
  std::vector<Colour> resources_;
  std::vector<int> round_of_;
};

/// Classes, numbered as their first members come.
struct Classes {
  std::vector<int> of;       // each member's class
  std::vector<int> members;  // the first of each class

  explicit Classes(const std::vector<Colour>& colours) {
    std::unordered_map<Colour, int> numbers;
    for (std::size_t i = 0; i < colours.size(); ++i) {
      const auto [at, added] = numbers.try_emplace(colours[i], static_cast<int>(members.size()));
      if (added) members.push_back(static_cast<int>(i));
      of.push_back(at->second);
    }
  }
  int count() const { return static_cast<int>(members.size()); }
};

/// The flows of a class that has the first member of its source class, with resources as classes.
class Quotient {
 public:
  Quotient(const Workload& workload, const Classes& actors, const Classes& connections,
           const Classes& resources)
      : workload_(workload), actors_(actors), connections_(connections), resources_(resources) {
    result_.actors = actors.count();
    result_.connections = connections.count();
    for (const int member : resources.members) {
      result_.capacities.push_back(workload.capacities[index(member)]);
      result_.names.push_back(workload.names[index(member)]);
    }
    result_.courses = workload.courses;
  }

  Workload run() {
    for (const Round& round : workload_.rounds) add_round(round);
    return std::move(result_);
  }

 private:
  struct Key {
    int source;
    int destination;
    bool local;
    int connection;
    double bytes;
    double latency;
    std::vector<int> resources;  // classes, sorted
    auto operator<=>(const Key&) const = default;
  };

  void add_round(const Round& round) {
    // How often flows of each class cross the first member of each class of resources.
    std::map<Key, std::map<int, int>> found;
    for (int i = round.first_flow; i < round.last_flow; ++i) {
      const Flow& flow = workload_.flows[index(i)];
      const bool first = actors_.members[index(actors_.of[index(flow.source)])] == flow.source;
      bool crosses_first = false;
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        const int resource = workload_.uses[index(use)].resource;
        crosses_first =
            crosses_first || resources_.members[index(resources_.of[index(resource)])] == resource;
      }
      if (!first && !crosses_first) continue;
      std::map<int, int>& crossings = found[key_of(flow)];
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        const int resource = workload_.uses[index(use)].resource;
        const int of = resources_.of[index(resource)];
        crossings[of] += resources_.members[index(of)] == resource ? 1 : 0;
      }
    }
    Round result{static_cast<int>(result_.flows.size()), 0, round.repeats};
    for (const auto& [key, crossings] : found) {
      const int first = static_cast<int>(result_.uses.size());
      for (const auto& [resource, times] : crossings) {
        assert(times > 0);
        result_.uses.push_back({resource, static_cast<double>(times)});
      }
      result_.flows.push_back({key.source, key.destination, key.local, key.connection, key.bytes, key.latency,
                               first, static_cast<int>(result_.uses.size())});
    }
    result.last_flow = static_cast<int>(result_.flows.size());
    result_.rounds.push_back(result);
  }

  Key key_of(const Flow& flow) const {
    Key key{actors_.of[index(flow.source)],
            actors_.of[index(flow.destination)],
            flow.local,
            connections_.of[index(flow.connection)],
            flow.bytes,
            flow.latency,
            {}};
    for (int use = flow.first_use; use < flow.last_use; ++use) {
      key.resources.push_back(resources_.of[index(workload_.uses[index(use)].resource)]);
    }
    std::sort(key.resources.begin(), key.resources.end());
    return key;
  }

  const Workload& workload_;
  const Classes& actors_;
  const Classes& connections_;
  const Classes& resources_;
  Workload result_;
};

/// For each resource, the others through which the flows that cross it come: of each flow the narrowest.
class Feeders {
 public:
  explicit Feeders(const Workload& workload) : workload_(workload), kept_(workload.capacities.size(), true) {
    crossing_.resize(workload.capacities.size());
    for (std::size_t i = 0; i < workload.flows.size(); ++i) {
      const Flow& flow = workload.flows[i];
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        crossing_[index(workload.uses[index(use)].resource)].push_back(static_cast<int>(i));
      }
    }
  }

  /// Wide ones first: those are the likelier to have slack.
  std::vector<char> kept() {
    std::vector<int> order(kept_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return workload_.capacities[index(a)] > workload_.capacities[index(b)];
    });
    for (const int resource : order) kept_[index(resource)] = can_fill(resource);
    return kept_;
  }

 private:
  bool can_fill(int resource) const {
    double reaches = 0;
    std::unordered_set<int> counted;
    for (const int i : crossing_[index(resource)]) {
      const Flow& flow = workload_.flows[index(i)];
      int narrowest = -1;
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        const int other = workload_.uses[index(use)].resource;
        if (other == resource || !kept_[index(other)]) continue;
        if (narrowest < 0 || workload_.capacities[index(other)] < workload_.capacities[index(narrowest)]) {
          narrowest = other;
        }
      }
      if (narrowest < 0) return true;
      if (counted.insert(narrowest).second) reaches += workload_.capacities[index(narrowest)];
      if (reaches > workload_.capacities[index(resource)]) return true;
    }
    return false;
  }

  const Workload& workload_;
  std::vector<std::vector<int>> crossing_;  // flows
  std::vector<char> kept_;
};

}  // namespace

Workload without_slack(Workload workload) {
  const std::vector<char> kept = Feeders(workload).kept();
  std::vector<int> number(kept.size());
  std::size_t resources = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    number[i] = static_cast<int>(resources);
    workload.capacities[resources] = workload.capacities[i];
    workload.names[resources++] = workload.names[i];
  }
  workload.capacities.resize(resources);
  workload.names.resize(resources);
  std::size_t uses = 0;
  for (Flow& flow : workload.flows) {
    const int first = static_cast<int>(uses);
    for (int use = flow.first_use; use < flow.last_use; ++use) {
      const Use crossed = workload.uses[index(use)];
      if (!kept[index(crossed.resource)]) continue;
      workload.uses[uses++] = {number[index(crossed.resource)], crossed.weight};
    }
    flow.first_use = first;
    flow.last_use = static_cast<int>(uses);
  }
  workload.uses.resize(uses);
  return workload;
}

Workload by_classes(const Workload& workload) {
  Refinement refinement(workload);
  if (!refinement.run()) return workload;
  const Classes actors(refinement.actors());
  if (actors.count() == workload.actors) return workload;
  const Classes connections(refinement.connections());
  const Classes resources(refinement.resources());
  return Quotient(workload, actors, connections, resources).run();
}

}  // namespace polyring
