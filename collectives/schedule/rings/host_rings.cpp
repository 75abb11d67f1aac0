#include "collectives/schedule/rings/host_rings.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/index.hpp"
#include "collectives/schedule/rings/ring_search.hpp"
#include "topology/path.hpp"
#include "topology/rank_groups.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

using Order = std::vector<int>;

constexpr int kMostLanes = 16;
constexpr std::int64_t kMostSteps = 2'000'000;

/// The link that a transfer between two GPUs takes when there is one of NVLink or xGMI.
const Link* direct_link(const Machine& machine, const Path& path) {
  if (path.type != PathType::nvl || path.hops.size() != 1) return nullptr;
  return &machine.links[index(path.hops.front().link)];
}

/// The paths between all ranks of a host.
class Paths {
 public:
  explicit Paths(const Machine& machine) : machine_(machine), ranks_(machine.ranks()) {
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to)
        paths_.push_back(
            find_path(machine, machine.rank_device(from), machine.rank_device(to)).value_or(Path{}));
    }
  }

  int ranks() const { return ranks_; }
  const Path& at(int from, int to) const { return paths_[index(from * ranks_ + to)]; }
  const Link* direct(int from, int to) const {
    return from == to ? nullptr : direct_link(machine_, at(from, to));
  }

  /// Buses between sockets first, then links.
  int cost(int from, int to) const {
    constexpr int kBus = 1000;
    int cost = 0;
    for (const Hop hop : at(from, to).hops)
      cost += machine_.links[index(hop.link)].kind == LinkKind::socket_bus ? kBus + 1 : 1;
    return cost;
  }

  bool all_switched() const {
    for (int from = 0; from < ranks_; ++from) {
      for (int to = 0; to < ranks_; ++to) {
        if (from != to && (at(from, to).type != PathType::nvl || at(from, to).hops.size() < 2)) return false;
      }
    }
    return true;
  }

 private:
  const Machine& machine_;
  int ranks_;
  std::vector<Path> paths_;
};

/// What a lane may have of the links between GPUs, widest first; 0 alone where a link's bandwidth is unknown.
std::vector<double> lane_widths(const Paths& paths) {
  std::set<double, std::greater<>> widths;
  constexpr double kUnit = 1e6;  // B/s, to which widths are taken for multiples of each other
  std::int64_t common = 0;
  for (int from = 0; from < paths.ranks(); ++from) {
    for (int to = 0; to < paths.ranks(); ++to) {
      const Link* link = paths.direct(from, to);
      if (link == nullptr) continue;
      if (!link->bandwidth.known()) return {0};
      for (const int part : {1, 2, 3}) widths.insert(link->bandwidth.value / part);
      common = std::gcd(common, std::llround(link->bandwidth.value / kUnit));
    }
  }
  if (common > 0) widths.insert(static_cast<double>(common) * kUnit);
  return {widths.begin(), widths.end()};
}

/// How many lanes as wide as `lane` each link carries, as far as they count; one if it is not known.
PairMatrix lanes_of_links(const Paths& paths, double lane) {
  PairMatrix lanes(paths.ranks());
  for (int from = 0; from < paths.ranks(); ++from) {
    for (int to = 0; to < paths.ranks(); ++to) {
      const Link* link = paths.direct(from, to);
      if (link == nullptr) continue;
      constexpr double kRounding = 1e-6;
      const double carried = lane > 0 ? link->bandwidth.value / lane + kRounding : 1;
      lanes.at(from, to) = static_cast<int>(std::min<double>(carried, kMostLanes));
    }
  }
  return lanes;
}

/// No orders where no ring is of NVLinks alone.
HostRings nvlink_rings(const Paths& paths) {
  HostRings best{RingWay::nvlink, {}};
  double most = 0;  // bandwidth of all rings
  // The wider lanes come first, and are fewer.
  for (const double lane : lane_widths(paths)) {
    const double width = lane > 0 ? lane : 1;
    const int least = static_cast<int>(std::min<double>(most * (1 + 1e-9) / width, kMostLanes)) + 1;
    std::vector<Order> found = pack_rings(lanes_of_links(paths, lane), least, kMostLanes, kMostSteps);
    if (found.empty()) continue;
    most = static_cast<double>(found.size()) * width;
    best.orders = std::move(found);
  }
  return best;
}

Order rank_order(int ranks) {
  Order order(index(ranks));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int cost_of_ring(const PairMatrix& cost, const Order& ring) {
  int sum = cost.at(ring.back(), ring.front());
  for (std::size_t i = 1; i < ring.size(); ++i) sum += cost.at(ring[i - 1], ring[i]);
  return sum;
}

HostRings mixed_rings(const Paths& paths) {
  PairMatrix cost(paths.ranks());
  for (int from = 0; from < paths.ranks(); ++from) {
    for (int to = 0; to < paths.ranks(); ++to) cost.at(from, to) = paths.cost(from, to);
  }
  Order ring = rank_order(paths.ranks());
  const Order cheapest = cheapest_ring(cost);
  if (cost_of_ring(cost, cheapest) < cost_of_ring(cost, ring)) ring = cheapest;
  return {RingWay::mixed, {ring, Order(ring.rbegin(), ring.rend())}};
}

/// The NICs of each rank as one number: that of all ranks that have the same.
std::vector<int> numbered(const std::vector<std::vector<int>>& nics) {
  std::map<std::vector<int>, int> numbers;
  for (const std::vector<int>& of_rank : nics) numbers.try_emplace(of_rank);
  int next = 0;
  for (auto& [_, number] : numbers) number = next++;
  std::vector<int> result;
  for (const std::vector<int>& of_rank : nics) result.push_back(numbers.at(of_rank));
  return result;
}

/// Turns lanes' rings so that no NIC has more than so many of them, in or out of a host.
class Turner {
 public:
  /// `turns`: by lane its ring turned in every way, the best first. `nics`: by rank, numbered().
  Turner(const std::vector<std::vector<Order>>& turns, const std::vector<int>& nics, int most_of_nic)
      : turns_(turns), nics_(nics), most_(most_of_nic) {
    const std::size_t number = index(1 + *std::max_element(nics.begin(), nics.end()));
    in_.resize(number);
    out_.resize(number);
  }

  /// False when there is no such way, or none was found in a while.
  bool run() {
    if (chosen_.size() == turns_.size()) return true;
    for (const Order& order : turns_[chosen_.size()]) {
      if (--steps_left_ < 0) return false;
      int& in = in_[index(nics_[index(order.front())])];
      int& out = out_[index(nics_[index(order.back())])];
      if (in == most_ || out == most_) continue;
      ++in;
      ++out;
      chosen_.push_back(order);
      if (run()) return true;
      chosen_.pop_back();
      --in;
      --out;
    }
    return false;
  }

  const std::vector<Order>& chosen() const { return chosen_; }

 private:
  const std::vector<std::vector<Order>>& turns_;
  const std::vector<int>& nics_;
  int most_;
  int steps_left_ = 100'000;
  std::vector<int> in_;  // lanes, by NIC
  std::vector<int> out_;
  std::vector<Order> chosen_;
};

/// All turns of a ring, first those that spare the costliest step, and of equals in the dictionary's order.
std::vector<Order> turns_of(Order ring, const Paths& paths) {
  std::vector<Order> turns;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    turns.push_back(ring);
    std::rotate(ring.begin(), ring.begin() + 1, ring.end());
  }
  std::sort(turns.begin(), turns.end(), [&](const Order& a, const Order& b) {
    return std::tuple(-paths.cost(a.back(), a.front()), a) < std::tuple(-paths.cost(b.back(), b.front()), b);
  });
  return turns;
}

/// How many consecutive ranks each of the groups has, where there are several and all have as many; else 0.
int length_of_runs(const std::vector<RankGroup>& groups) {
  const int length = static_cast<int>(groups.front().ranks.size());
  if (groups.size() < 2 || length < 2) return 0;
  for (const RankGroup& group : groups) {
    const auto [first, last] = std::minmax_element(group.ranks.begin(), group.ranks.end());
    const bool a_run = *first % length == 0 && *last - *first == length - 1;
    if (!a_run || static_cast<int>(group.ranks.size()) != length) return 0;
  }
  return length;
}

}  // namespace

bool HostRings::follow_ranks() const {
  return std::all_of(orders.begin(), orders.end(), [](const Order& order) {
    const auto first = std::find(order.begin(), order.end(), 0);
    Order turned(first, order.end());
    turned.insert(turned.end(), order.begin(), first);
    Order forwards = rank_order(static_cast<int>(order.size()));
    if (turned == forwards) return true;
    std::reverse(forwards.begin() + 1, forwards.end());
    return turned == forwards;
  });
}

HostRings host_rings(const Machine& machine) {
  const int ranks = machine.ranks();
  if (ranks < 2 || ranks > kMostRingVertices) return {};
  const Paths paths(machine);
  if (paths.all_switched()) return {RingWay::switched, {rank_order(ranks)}};
  HostRings rings = nvlink_rings(paths);
  return rings.orders.empty() ? mixed_rings(paths) : rings;
}

std::vector<std::vector<int>> orders_between_hosts(const HostRings& rings, const Machine& machine) {
  const std::vector<int> nics = numbered(rank_nics(machine));
  const std::set<int> used(nics.begin(), nics.end());
  if (used.empty()) return rings.orders;
  const std::size_t even = std::lcm(rings.orders.size(), used.size());
  const std::size_t lanes = even <= index(kMostLanes) ? even : rings.orders.size();
  const Paths paths(machine);
  std::vector<std::vector<Order>> turns;
  for (std::size_t lane = 0; lane < lanes; ++lane)
    turns.push_back(turns_of(rings.orders[lane % rings.orders.size()], paths));
  for (int most = static_cast<int>((lanes + used.size() - 1) / used.size());; ++most) {
    Turner turner(turns, nics, most);
    if (turner.run()) return turner.chosen();
  }
}

int host_part_size(const Machine& machine) {
  const int island = length_of_runs(ranks_by_island(machine));
  return island > 0 ? island : length_of_runs(ranks_by_package(machine));
}

}  // namespace polyring
