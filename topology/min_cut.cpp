#include "topology/min_cut.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <set>

#include "topology/rank_nics.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// What rounding leaves of a capacity that is used up, in B/s.
constexpr double kNothing = 1;

/// Devices as numbers, with more for each link, for where the flow comes from, and where it goes.
class Numbers {
 public:
  explicit Numbers(const Machine& machine)
      : first_{0,
               static_cast<int>(machine.packages.size()),
               static_cast<int>(machine.switches.size()),
               machine.nvswitches,
               static_cast<int>(machine.gpus.size()),
               static_cast<int>(machine.nics.size())},
        links_(static_cast<int>(machine.links.size())) {
    for (std::size_t kind = 1; kind < std::size(first_); ++kind) first_[kind] += first_[kind - 1];
  }

  int of(DeviceId id) const { return first_[static_cast<int>(id.kind)] + id.index; }
  int of_link(int link) const { return first_[5] + link; }
  int source() const { return first_[5] + links_; }
  int sink() const { return source() + 1; }
  int count() const { return sink() + 1; }

 private:
  int first_[6];  // of each kind, in the order of DeviceKind
  int links_;
};

/// A network through which a flow is sent. An arc and its reverse are neighbours: 2i and 2i + 1.
class Network {
 public:
  explicit Network(int nodes) : arcs_of_(static_cast<std::size_t>(nodes)) {}

  void add(int from, int to, double forward, double backward) {
    arcs_of_[static_cast<std::size_t>(from)].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({to, forward});
    arcs_of_[static_cast<std::size_t>(to)].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({from, backward});
  }

  /// Sends all that there is room for, by shortest ways first (Edmonds and Karp, 1972). False when that is
  /// without end, see last_way().
  bool fill(int source, int sink) {
    while (find_way(source, sink)) {
      double room = kInfinite;
      for (int node = sink; node != source; node = tail(way_in(node)))
        room = std::min(room, arc(way_in(node)).room);
      if (room == kInfinite) return false;
      for (int node = sink; node != source; node = tail(way_in(node))) {
        arc(way_in(node)).room -= room;
        arc(way_in(node) ^ 1).room += room;
      }
    }
    return true;
  }

  /// The arcs of the last way that was found, numbered as they were added; from the sink backwards.
  std::vector<int> last_way(int source, int sink) const {
    std::vector<int> added;
    for (int node = sink; node != source; node = tail(way_in(node))) added.push_back(way_in(node) / 2);
    return added;
  }

  /// After fill(): whether more could flow to this node from the source.
  bool reached(int node) const { return way_in_[static_cast<std::size_t>(node)] != kNone; }

 private:
  struct Arc {
    int to;
    double room;
  };
  static constexpr int kNone = -1;
  static constexpr int kStart = -2;

  Arc& arc(int index) { return arcs_[static_cast<std::size_t>(index)]; }
  int way_in(int node) const { return way_in_[static_cast<std::size_t>(node)]; }
  int tail(int index) const { return arcs_[static_cast<std::size_t>(index ^ 1)].to; }

  /// Whether there is one, with room.
  bool find_way(int source, int sink) {
    way_in_.assign(arcs_of_.size(), kNone);
    way_in_[static_cast<std::size_t>(source)] = kStart;
    std::vector<int> queue{source};
    for (std::size_t next = 0; next < queue.size(); ++next) {
      for (const int index : arcs_of_[static_cast<std::size_t>(queue[next])]) {
        const int to = arc(index).to;
        if (arc(index).room <= kNothing || reached(to)) continue;
        way_in_[static_cast<std::size_t>(to)] = index;
        queue.push_back(to);
      }
    }
    return reached(sink);
  }

  std::vector<Arc> arcs_;
  std::vector<std::vector<int>> arcs_of_;
  std::vector<int> way_in_;  // by node: the arc by which find_way() came
};

double room_of(Bandwidth bandwidth) { return bandwidth.known() ? bandwidth.value : kInfinite; }

constexpr int kNoLink = -1;

/// A link as data can cross it: both ways, but to a NIC only on the way out of the host.
struct Way {
  int link = kNoLink;  // index into Machine::links
  int from = 0;
  int to = 0;
  double room = kInfinite;
  bool back = true;
};

/// A link to NICs leads to a node of its own, and from there to all NICs that share it.
std::vector<Way> ways_of(const Machine& machine, const Numbers& numbers, const std::vector<int>& nics) {
  const std::vector<int> physical = physical_links(machine);
  std::set<int> shared;  // numbers of the nodes that a way leads to already
  std::vector<Way> ways;
  for (int i = 0; i < static_cast<int>(machine.links.size()); ++i) {
    const Link& link = machine.links[static_cast<std::size_t>(i)];
    const bool reversed = link.from.kind == DeviceKind::nic;
    const DeviceId from = reversed ? link.to : link.from;
    const DeviceId to = reversed ? link.from : link.to;
    const double room = room_of(link.bandwidth);
    if (to.kind != DeviceKind::nic) {
      ways.push_back({i, numbers.of(from), numbers.of(to), room});
    } else if (std::ranges::find(nics, to.index) != nics.end()) {
      const int between = numbers.of_link(physical[static_cast<std::size_t>(i)]);
      if (shared.insert(between).second) ways.push_back({i, numbers.of(from), between, room, false});
      ways.push_back({kNoLink, between, numbers.of(to), kInfinite, false});
    }
  }
  return ways;
}

}  // namespace

MinCut min_cut(const Machine& machine, const std::vector<bool>& inside, bool several_hosts, bool domain) {
  assert(static_cast<int>(inside.size()) == machine.ranks());
  const Numbers numbers(machine);
  const std::vector<int> nics = several_hosts ? usable_nics(machine) : std::vector<int>{};
  const std::vector<Way> ways = ways_of(machine, numbers, nics);
  const auto ports_of = [&](int nic) { return machine.nics[static_cast<std::size_t>(nic)].bandwidth(); };
  Network network(numbers.count());
  for (const Way& way : ways) network.add(way.from, way.to, way.room, way.back ? way.room : 0);
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    const int device = numbers.of(machine.rank_device(rank));
    const bool is_inside = inside[static_cast<std::size_t>(rank)];
    network.add(is_inside ? numbers.source() : device, is_inside ? device : numbers.sink(), kInfinite, 0);
  }
  for (const int nic : nics) {
    network.add(numbers.of({DeviceKind::nic, nic}), numbers.sink(), room_of(ports_of(nic)), 0);
  }
  for (int i = 0; domain && i < machine.nvswitches; ++i)
    network.add(numbers.of({DeviceKind::nvswitch, i}), numbers.sink(), kInfinite, 0);
  MinCut cut;
  if (!network.fill(numbers.source(), numbers.sink())) {
    cut.unknown = true;
    const auto after_links = static_cast<int>(ways.size());
    const int after_ranks = after_links + machine.ranks();
    const int after_nics = after_ranks + static_cast<int>(nics.size());
    for (const int arc : network.last_way(numbers.source(), numbers.sink())) {
      const int link = arc < after_links ? ways[static_cast<std::size_t>(arc)].link : kNoLink;
      if (link != kNoLink) cut.links.push_back(link);
      if (arc >= after_ranks && arc < after_nics)
        cut.nics.push_back(nics[static_cast<std::size_t>(arc - after_ranks)]);
    }
    return cut;
  }
  for (const Way& way : ways) {
    const bool from = network.reached(way.from);
    const bool to = network.reached(way.to);
    if (from == to || (to && !way.back)) continue;
    cut.links.push_back(way.link);
    cut.bandwidth = cut.bandwidth + Bandwidth{way.room};
  }
  for (const int nic : nics) {
    if (!network.reached(numbers.of({DeviceKind::nic, nic}))) continue;
    cut.nics.push_back(nic);
    cut.bandwidth = cut.bandwidth + ports_of(nic);
  }
  return cut;
}

}  // namespace polyring
