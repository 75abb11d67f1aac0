#include "simulation/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/index.hpp"

namespace polyring {
namespace {

using Colour = std::uint64_t;

/// Vigna's splitmix64 as a mixing function: "Fast splittable pseudorandom number generators", OOPSLA 2014.
Colour mixed(Colour value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Colour joined(Colour a, Colour b) { return mixed(a ^ (b + 0x632be59bd9b4e019)); }

/// An actor in a course.
std::size_t role_of(const Workload& workload, int course, int actor) {
  return index(course) * index(workload.actors) + index(actor);
}

template <typename Do>
void for_each_flow(const Workload& workload, Do&& act) {
  for (int course = 0; course < static_cast<int>(workload.courses.size()); ++course) {
    const Course& at = workload.courses[index(course)];
    for (int round = at.first_round; round < at.last_round; ++round) {
      const Round& of = workload.rounds[index(round)];
      for (int flow = of.first_flow; flow < of.last_flow; ++flow) act(course, round - at.first_round, flow);
    }
  }
}

std::size_t distinct(const std::vector<Colour>& colours) {
  std::vector<Colour> table(std::bit_ceil(2 * colours.size() + 1));  // 0: free
  std::size_t found = 0;
  for (const Colour colour : colours) {
    std::size_t at = colour & (table.size() - 1);
    while (table[at] != 0 && table[at] != colour) at = (at + 1) & (table.size() - 1);
    found += table[at] == colour ? 0 : 1;
    table[at] = colour;
  }
  return found;
}

/// Refines colours until no class falls apart any more.
class Refinement {
 public:
  /// `exchange`: lanes may stand for each other.
  Refinement(const Workload& workload, bool exchange)
      : workload_(workload),
        actors_(index(workload.actors)),
        roles_(workload.courses.size() * actors_.size()),
        connections_(index(workload.connections)),
        resources_(workload.capacities.size()) {
    for (std::size_t i = 0; i < resources_.size(); ++i) {
      resources_[i] = mixed(std::bit_cast<Colour>(workload.capacities[i]));
    }
    for (std::size_t i = 0; !exchange && i < roles_.size(); ++i) roles_[i] = mixed(i / actors_.size());
  }

  /// False when too little would be saved, or when it takes more than so many turns, as when a difference
  /// travels far around a ring.
  bool run() {
    constexpr int kMostTurns = 64;
    // Where most equal ranks are one actor already, little is left to gain by many.
    constexpr int kMostFlows = 1 << 24;
    const int flows = static_cast<int>(workload_.flows.size()) + 1;
    const int most = workload_.all_differ ? kMostTurns : std::clamp(kMostFlows / flows, 1, kMostTurns);
    std::size_t classes = 0;
    for (int turn = 0; turn < most; ++turn) {
      refine();
      if (2 * distinct(actors_) > actors_.size()) return false;
      const std::size_t now = distinct(roles_) + distinct(connections_) + distinct(resources_);
      if (now == classes) return true;
      classes = now;
    }
    return false;
  }

  const std::vector<Colour>& actors() const { return actors_; }
  /// No two actors of different classes have roles of one colour.
  const std::vector<Colour>& roles() const { return roles_; }
  const std::vector<Colour>& connections() const { return connections_; }
  const std::vector<Colour>& resources() const { return resources_; }

 private:
  void refine() {
    std::vector<Colour> roles(roles_.size());
    std::vector<Colour> connections(connections_.size());
    std::vector<Colour> resources(resources_.size());
    for_each_flow(workload_, [&](int course, int step, int number) {
      const Flow& flow = workload_.flows[index(number)];
      const std::size_t source = role_of(workload_, course, flow.source);
      const std::size_t destination = role_of(workload_, course, flow.destination);
      Colour colour = joined(static_cast<Colour>(step), std::bit_cast<Colour>(flow.bytes));
      colour = joined(colour, std::bit_cast<Colour>(flow.latency));
      colour = joined(joined(colour, roles_[source]), roles_[destination]);
      colour = joined(colour, connections_[index(flow.connection)]);
      Colour crossed = 0;
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        crossed += joined(weight_colour(use), resources_[index(workload_.uses[index(use)].resource)]);
      }
      colour = joined(colour, crossed);
      // Sums, since the order in which flows are listed means nothing.
      roles[source] += joined(colour, 1);
      roles[destination] += joined(colour, 2);
      connections[index(flow.connection)] += joined(colour, 4);
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        resources[index(workload_.uses[index(use)].resource)] += joined(colour, weight_colour(use));
      }
    });
    join(roles_, roles);
    join(connections_, connections);
    join(resources_, resources);
    join_roles();
  }

  Colour weight_colour(int use) const { return std::bit_cast<Colour>(workload_.uses[index(use)].weight); }

  /// An actor is all of its roles, and each of them is that actor's.
  void join_roles() {
    std::vector<Colour> actors(actors_.size());
    for (std::size_t i = 0; i < roles_.size(); ++i) actors[i % actors.size()] += joined(roles_[i], 5);
    join(actors_, actors);
    for (std::size_t i = 0; i < roles_.size(); ++i) roles_[i] = joined(roles_[i], actors_[i % actors.size()]);
  }

  static void join(std::vector<Colour>& colours, const std::vector<Colour>& met) {
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = joined(colours[i], met[i]);
  }

  const Workload& workload_;
  std::vector<Colour> actors_;
  std::vector<Colour> roles_;
  std::vector<Colour> connections_;
  std::vector<Colour> resources_;
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

/// The flows of the first member of each source class, with classes for resources. Among equal roles the
/// first one stands for all.
class Quotient {
 public:
  Quotient(const Workload& workload, const Refinement& refinement)
      : workload_(workload),
        actors_(refinement.actors()),
        connections_(refinement.connections()),
        resources_(refinement.resources()),
        roles_(refinement.roles()),
        found_(workload.rounds.size()) {
    result_.actors = actors_.count();
    result_.all_differ = false;
    result_.connections = connections_.count();
    for (const int member : resources_.members) {
      result_.capacities.push_back(workload.capacities[index(member)]);
      result_.names.push_back(workload.names[index(member)]);
    }
    result_.courses = workload.courses;
    for (const int member : actors_.members) {
      for (int course = 0; course < static_cast<int>(workload.courses.size()); ++course)
        course_of_role_.try_emplace(roles_[role_of(workload, course, member)], course);
    }
  }

  Workload run() {
    for_each_flow(workload_, [&](int course, int step, int flow) { collect(course, step, flow); });
    for (std::size_t round = 0; round < found_.size(); ++round) write(round);
    return std::move(result_);
  }

 private:
  struct Key {
    int source;
    int destination;
    bool local;
    int shift;
    int connection;
    double bytes;
    double latency;
    std::vector<int> resources;  // classes, sorted
    auto operator<=>(const Key&) const = default;
  };
  /// How often flows of a class cross the first member of each class of resources, each by its weight.
  using Crossings = std::map<int, double>;

  void collect(int course, int step, int number) {
    const Flow& flow = workload_.flows[index(number)];
    const bool first = actors_.members[index(actors_.of[index(flow.source)])] == flow.source;
    const auto is_first = [&](int resource) {
      return resources_.members[index(resources_.of[index(resource)])] == resource;
    };
    bool crosses_first = false;
    for (int use = flow.first_use; use < flow.last_use; ++use) {
      crosses_first = crosses_first || is_first(workload_.uses[index(use)].resource);
    }
    if (!first && !crosses_first) return;
    const int in_course = course_of_role_.at(roles_[role_of(workload_, course, flow.source)]);
    const int to_course = course_of_role_.at(roles_[role_of(workload_, course, flow.destination)]);
    const int round = workload_.courses[index(in_course)].first_round + step;
    Crossings& crossings = found_[index(round)][key_of(flow, to_course - in_course)];
    for (int use = flow.first_use; use < flow.last_use; ++use) {
      const Use& crossed = workload_.uses[index(use)];
      crossings[resources_.of[index(crossed.resource)]] += is_first(crossed.resource) ? crossed.weight : 0;
    }
  }

  void write(std::size_t round) {
    Round result{static_cast<int>(result_.flows.size()), 0, workload_.rounds[round].repeats};
    for (const auto& [key, crossings] : found_[round]) {
      const int first = static_cast<int>(result_.uses.size());
      for (const auto& [resource, weight] : crossings) {
        assert(weight > 0);
        result_.uses.push_back({resource, weight});
      }
      result_.flows.push_back({key.source, key.destination, key.local, key.connection, key.bytes, key.latency,
                               first, static_cast<int>(result_.uses.size()), key.shift});
    }
    result.last_flow = static_cast<int>(result_.flows.size());
    result_.rounds.push_back(result);
  }

  Key key_of(const Flow& flow, int shift) const {
    Key key{actors_.of[index(flow.source)],
            actors_.of[index(flow.destination)],
            flow.local,
            shift,
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
  Classes actors_;
  Classes connections_;
  Classes resources_;
  const std::vector<Colour>& roles_;
  std::unordered_map<Colour, int> course_of_role_;
  std::vector<std::map<Key, Crossings>> found_;  // by round
  Workload result_;
};

bool same_shape(const Workload& workload, const Course& a, const Course& b) {
  const int rounds = a.last_round - a.first_round;
  if (a.chunks != b.chunks || b.last_round - b.first_round != rounds) return false;
  for (int step = 0; step < rounds; ++step) {
    const int repeats = workload.rounds[index(a.first_round + step)].repeats;
    if (workload.rounds[index(b.first_round + step)].repeats != repeats) return false;
  }
  return true;
}

/// Whether nothing but their flows could tell the lanes apart.
bool can_exchange(const Workload& workload, int window) {
  if (workload.courses.size() < 2) return false;
  const Course& first = workload.courses.front();
  if (first.chunks > window) return false;
  for (const Course& course : workload.courses) {
    if (!same_shape(workload, first, course)) return false;
  }
  // Where lanes share a connection, as a rank's reductions do, the older stream goes first.
  std::vector<int> course_of(index(workload.connections), -1);
  bool own = true;
  for_each_flow(workload, [&](int course, int, int flow) {
    int& of = course_of[index(workload.flows[index(flow)].connection)];
    own = own && (of < 0 || of == course);
    of = course;
  });
  return own;
}

/// For each resource, the others through which the flows that cross it come: of each flow the one that holds
/// it back most.
class Feeders {
 public:
  explicit Feeders(const Workload& workload) : workload_(workload), kept_(workload.capacities.size(), true) {
    crossing_.resize(workload.capacities.size());
    for (std::size_t i = 0; i < workload.flows.size(); ++i) {
      const Flow& flow = workload.flows[i];
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        const Use& crossed = workload.uses[index(use)];
        crossing_[index(crossed.resource)].push_back({static_cast<int>(i), crossed.weight});
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
    std::unordered_map<int, double> brought;  // at most, by all flows that one resource holds back
    for (const Crossing& crossing : crossing_[index(resource)]) {
      const Flow& flow = workload_.flows[index(crossing.flow)];
      int narrowest = -1;
      double rate = 0;
      for (int use = flow.first_use; use < flow.last_use; ++use) {
        const Use& other = workload_.uses[index(use)];
        if (other.resource == resource || !kept_[index(other.resource)]) continue;
        const double allowed = workload_.capacities[index(other.resource)] / other.weight;
        if (narrowest < 0 || allowed < rate) {
          narrowest = other.resource;
          rate = allowed;
        }
      }
      if (narrowest < 0) return true;
      double& most = brought[narrowest];
      reaches += std::max(0.0, crossing.weight * rate - most);
      most = std::max(most, crossing.weight * rate);
      if (reaches > workload_.capacities[index(resource)]) return true;
    }
    return false;
  }

  struct Crossing {
    int flow = 0;
    double weight = 1;
  };

  const Workload& workload_;
  std::vector<std::vector<Crossing>> crossing_;  // by resource
  std::vector<char> kept_;
};

}  // namespace

Workload without_slack(Workload workload) {
  if (!workload.all_differ) return workload;
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

Workload by_classes(const Workload& workload, int window) {
  for (const bool exchange : {true, false}) {
    if (exchange && !can_exchange(workload, window)) continue;
    Refinement refinement(workload, exchange);
    if (refinement.run()) return Quotient(workload, refinement).run();
  }
  return workload;
}

}  // namespace polyring
