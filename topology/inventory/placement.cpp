#include "topology/inventory/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "topology/host_names.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

/// "node07" of "node07.cluster.example".
std::string short_name(const std::string& name) { return name.substr(0, name.find('.')); }

/// Finds the adapters of hosts, and where they hang.
class Directory {
 public:
  explicit Directory(const FabricMap& of)
      : map(of),
        leaves(leaves_of(map)),
        neighbourhoods(neighbourhoods_of(map, leaves)),
        pods(pods_of(map, leaves)) {
    std::vector<int> neighbourhood_of(leaves.size());
    for (int i = 0; i < static_cast<int>(neighbourhoods.size()); ++i) {
      for (const int leaf : neighbourhoods[index(i)].leaves) neighbourhood_of[index(leaf)] = i;
    }
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      for (const int adapter : leaves[leaf].adapters) hangs_on_[adapter].push_back(neighbourhood_of[leaf]);
    }
    for (int i = 0; i < static_cast<int>(map.adapters.size()); ++i) {
      const FabricAdapter& adapter = map.adapters[index(i)];
      if (adapter.kind != AdapterKind::host) continue;
      for (const std::string& guid : adapter.port_guids) by_guid_.emplace(guid, i);
      if (!adapter.host.empty()) by_name_[short_name(adapter.host)].insert(i);
    }
    for (const FabricLink& link : map.links) {
      for (const FabricEnd end : {link.a, link.b}) {
        if (!end.is_switch) ports_[end.index][end.port] = link.bandwidth;
      }
    }
  }

  std::set<int> adapters_of(const HostIdentity& host) const {
    std::set<int> found;
    for (const std::string& guid : host.port_guids) {
      const auto adapter = by_guid_.find(normal_guid(guid));
      if (adapter != by_guid_.end()) found.insert(adapter->second);
    }
    const auto named = by_name_.find(short_name(host.name));
    if (named == by_name_.end()) return found;
    const std::set<int> planes = planes_of(found);
    for (const int adapter : named->second) {
      if (!planes.contains(map.adapters[index(adapter)].plane)) found.insert(adapter);
    }
    return found;
  }

  /// In which networks these adapters are.
  std::set<int> planes_of(const std::set<int>& adapters) const {
    std::set<int> planes;
    for (const int adapter : adapters) planes.insert(map.adapters[index(adapter)].plane);
    return planes;
  }

  /// Where most of these adapters hang; -1 when none hangs on a leaf.
  int neighbourhood(const std::set<int>& adapters) const {
    std::map<int, int> votes;
    for (const int adapter : adapters) {
      const auto hangs = hangs_on_.find(adapter);
      if (hangs == hangs_on_.end()) continue;
      for (const int neighbourhood : hangs->second) ++votes[neighbourhood];
    }
    const auto most = std::ranges::max_element(votes, {}, [](const auto& entry) { return entry.second; });
    return most == votes.end() ? -1 : most->first;
  }

  /// The rate of these adapters' links where all have the same.
  Bandwidth rate(const std::set<int>& adapters) const {
    std::set<Bandwidth> all;
    for (const int adapter : adapters) {
      for (const auto& [port, rate] : ports_of(adapter)) all.insert(rate);
    }
    return all.size() == 1 ? *all.begin() : Bandwidth{};
  }

  /// The ports with a cable of the host's adapter of this name ("mlx5_0"), or of the one that has the port
  /// with this GUID, and their rates; 0 when unknown.
  std::map<int, Bandwidth> ports(const HostIdentity& host, const std::string& device,
                                 const std::string& guid) const {
    const auto by_guid = by_guid_.find(normal_guid(guid));
    if (by_guid != by_guid_.end()) return ports_of(by_guid->second);
    std::map<int, Bandwidth> all;  // of each network that it is in
    for (const int adapter : adapters_of(host)) {
      if (map.adapters[index(adapter)].device == device) all.merge(ports_of(adapter));
    }
    return all;
  }

  const FabricMap& map;
  const std::vector<Leaf> leaves;
  const std::vector<Neighbourhood> neighbourhoods;
  const std::vector<std::vector<Pod>> pods;

  /// The one of a level's pods that the neighbourhood is in.
  int pod_of(std::size_t level, int neighbourhood) const {
    const int leaf = neighbourhoods[index(neighbourhood)].leaves.front();
    const auto has = [&](const Pod& pod) { return std::ranges::binary_search(pod.leaves, leaf); };
    return static_cast<int>(std::ranges::find_if(pods[level], has) - pods[level].begin());
  }

 private:
  std::unordered_map<int, std::vector<int>> hangs_on_;  // by adapter
  std::unordered_map<std::string, int> by_guid_;
  std::unordered_map<std::string, std::set<int>> by_name_;
  std::unordered_map<int, std::map<int, Bandwidth>> ports_;  // by adapter

  std::map<int, Bandwidth> ports_of(int adapter) const {
    const auto found = ports_.find(adapter);
    return found == ports_.end() ? std::map<int, Bandwidth>{} : found->second;
  }
};

/// The hosts of one neighbourhood, as positions in the inventory.
struct Near {
  int neighbourhood = 0;
  std::vector<int> hosts;
};

class Placing {
 public:
  Placing(const Inventory& inventory, const FabricMap& map) : map_(map), directory_(map), result_(inventory) {
    collect_hosts();
    assign();
  }

  Inventory run() {
    fill_rates();
    std::vector<int> order;
    for (const Near& near : near_) order.insert(order.end(), near.hosts.begin(), near.hosts.end());
    order.insert(order.end(), missing_.begin(), missing_.end());
    const bool moved = !std::ranges::is_sorted(order);
    if (moved) result_ = reordered(result_, order);
    result_.cluster.fabric = fabric();
    result_.cluster.validate();
    if (moved) note("hosts are in the order of their leaf switches");
    note_places();
    return std::move(result_);
  }

  std::vector<PlacedLeaf> leaves() const {
    std::vector<PlacedLeaf> leaves;
    for (const Near& near : near_) leaves.push_back(PlacedLeaf{leaves_text(near), names(near.hosts)});
    return leaves;
  }

 private:
  template <typename... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    result_.notes.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void collect_hosts() {
    for (std::size_t group = 0; group < result_.cluster.groups.size(); ++group) {
      const HostGroup& of = result_.cluster.groups[group];
      if (result_.members[group].empty()) {
        usage_error(
            "'{}' stands for {} hosts without names, which cannot be found in '{}'; name a file of each host",
            of.machine.name, of.count, map_.source);
      }
      for (const HostIdentity& host : result_.members[group]) hosts_.push_back(host);
    }
  }

  void assign() {
    std::map<int, std::size_t> seen;
    for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
      const int neighbourhood = directory_.neighbourhood(directory_.adapters_of(hosts_[index(host)]));
      if (neighbourhood < 0) {
        missing_.push_back(host);
        continue;
      }
      const auto [entry, is_new] = seen.try_emplace(neighbourhood, near_.size());
      if (is_new) near_.push_back({neighbourhood, {}});
      near_[entry->second].hosts.push_back(host);
    }
    if (near_.empty()) {
      usage_error(
          "none of the hosts ({}) is in '{}', neither by GUID nor by name; see whether the files are of one "
          "cluster",
          names_text(names(missing_)), map_.source);
    }
    // The one that is not full comes last, where Fabric can express it.
    std::ranges::stable_sort(near_, std::ranges::greater{},
                             [](const Near& near) { return near.hosts.size(); });
    for (std::size_t level = 0; level < directory_.pods.size(); ++level) {
      const std::map<int, int> hosts = hosts_by_pod(level);
      std::ranges::stable_sort(near_, [&](const Near& a, const Near& b) {
        const int pod_a = directory_.pod_of(level, a.neighbourhood);
        const int pod_b = directory_.pod_of(level, b.neighbourhood);
        return std::pair(-hosts.at(pod_a), pod_a) < std::pair(-hosts.at(pod_b), pod_b);
      });
    }
  }

  /// How many of these hosts are in each pod of a level that has any.
  std::map<int, int> hosts_by_pod(std::size_t level) const {
    std::map<int, int> hosts;
    for (const Near& near : near_)
      hosts[directory_.pod_of(level, near.neighbourhood)] += static_cast<int>(near.hosts.size());
    return hosts;
  }

  /// InfiniBand ports whose rate nobody knew run at that of their cables.
  void fill_rates() {
    for (std::size_t group = 0; group < result_.cluster.groups.size(); ++group) {
      Machine& machine = result_.cluster.groups[group].machine;
      const std::vector<HostIdentity>& members = result_.members[group];
      const Bandwidth usual = directory_.rate(directory_.adapters_of(members.front()));
      const std::vector<int> open = add_ports(machine, members);
      const std::size_t all_guids = identity_of(machine).port_guids.size();
      std::size_t guids = 0;  // of ports before this one
      std::vector<std::string> filled;
      for (Nic& nic : machine.nics) {
        bool any = false;
        for (Port& port : nic.ports) {
          const std::size_t guid = port.guid.empty() ? kNoGuid : guids++;
          if (!port.up || port.bandwidth.known() || nic.kind == NicKind::ethernet) continue;
          port.bandwidth = least_rate(members, nic, port, guid, all_guids);
          if (!port.bandwidth.known() && nic.kind == NicKind::infiniband) port.bandwidth = usual;
          any |= port.bandwidth.known();
        }
        if (any) filled.push_back(nic.name);
      }
      // Beside adapters with ports, one without would count as leading nowhere.
      if (std::ranges::any_of(machine.nics, [](const Nic& nic) { return !nic.ports.empty(); })) {
        for (const int nic : open) add_port(machine.nics[index(nic)], 1);
      }
      if (!filled.empty())
        machine.citations.push_back(
            {fmt::format("rates of InfiniBand ports of {}", names_text(filled)), source()});
    }
  }

  /// Of adapters that show no ports, as in a matrix of nvidia-smi, those with a cable at any of the hosts.
  /// Returns the adapters that may be up all the same, as in a network that the map does not have.
  std::vector<int> add_ports(Machine& machine, std::vector<HostIdentity> members) {
    std::erase_if(members, [&](const auto& host) { return directory_.adapters_of(host).empty(); });
    if (members.empty()) return {};
    std::vector<int> open = usable_nics(machine);
    std::erase_if(open, [&](int nic) { return !machine.nics[index(nic)].ports.empty(); });
    for (Nic& nic : machine.nics) {
      if (nic.ports.empty() && nic.kind != NicKind::ethernet) add_ports(nic, members);
    }
    std::vector<std::string> adapters;
    std::erase_if(open, [&](int nic) {
      const Nic& one = machine.nics[index(nic)];
      const bool is_open = one.ports.empty() && one.kind != NicKind::ethernet;
      if (is_open) adapters.push_back(one.name);
      return !is_open;
    });
    if (!open.empty()) {
      note(
          "no cable of {} of {} is in '{}'; taken to be up, at a rate that the files of other networks "
          "(--fabric) or --assume nic=RATE tell",
          names_text(adapters), names_text(names(members)), map_.source);
    }
    return open;
  }

  void add_ports(Nic& nic, const std::vector<HostIdentity>& members) {
    std::map<int, std::set<std::string>> hosts;  // by port
    for (const HostIdentity& host : members) {
      for (const auto& [number, rate] : directory_.ports(host, nic.name, "")) hosts[number].insert(host.name);
    }
    for (const auto& [number, with] : hosts) {
      add_port(nic, number);
      std::vector<std::string> without = names(members);
      std::erase_if(without, [&with = with](const std::string& host) { return with.contains(host); });
      if (without.empty()) continue;
      note("no cable of {}'s port {} of {} is in '{}'; plans take it as at equal hosts", nic.name, number,
           names_text(without), map_.source);
    }
  }

  static void add_port(Nic& nic, int number) {
    nic.ports.push_back({number, true, {}});
    nic.kind = NicKind::infiniband;
  }

  /// The least that this port has in any of these hosts, which are equal; 0 when unknown of all. `guid`:
  /// which one of a host's GUIDs is the port's, where the host has `all_guids`; else some are unknown, and
  /// its name tells.
  Bandwidth least_rate(const std::vector<HostIdentity>& members, const Nic& nic, const Port& port,
                       std::size_t guid, std::size_t all_guids) {
    std::set<Bandwidth> rates;
    for (const HostIdentity& host : members) {
      const bool known = guid < all_guids && host.port_guids.size() == all_guids;
      const std::map<int, Bandwidth> ports =
          directory_.ports(host, nic.name, known ? host.port_guids[guid] : "");
      const auto own = ports.find(port.number);
      if (own != ports.end() && own->second.known()) rates.insert(own->second);
    }
    if (rates.size() > 1) {
      note("cables of {}'s port {} have {} to {} in hosts that are equal; plans take the least", nic.name,
           port.number, to_text(*rates.begin()), to_text(*rates.rbegin()));
    }
    return rates.empty() ? Bandwidth{} : *rates.begin();
  }

  static constexpr std::size_t kNoGuid = std::numeric_limits<std::size_t>::max();

  std::string source() const { return fmt::format("ibnetdiscover '{}'", map_.source); }

  std::vector<std::string> names(const std::vector<int>& hosts) const {
    std::vector<std::string> names;
    for (const int host : hosts) names.push_back(hosts_[index(host)].name);
    return names;
  }
  static std::vector<std::string> names(const std::vector<HostIdentity>& hosts) {
    std::vector<std::string> names;
    for (const HostIdentity& host : hosts) names.push_back(host.name);
    return names;
  }

  const Neighbourhood& neighbourhood(const Near& near) const {
    return directory_.neighbourhoods[index(near.neighbourhood)];
  }

  bool is_even() const {
    const std::size_t full = near_.front().hosts.size();
    return std::all_of(near_.begin(), near_.end() - 1,
                       [&](const Near& near) { return near.hosts.size() == full; });
  }

  Fabric fabric() {
    Fabric fabric;
    // One switch joins all hosts, or one of each rail.
    if (directory_.neighbourhoods.size() == 1 && directory_.leaves.size() == map_.planes.size()) {
      fabric.citations = {{directory_.leaves.size() == 1 ? "one switch" : "one switch a rail", source()}};
      return fabric;
    }
    const auto placed_hosts = hosts_.size() - missing_.size();
    std::size_t per_leaf = near_.front().hosts.size();
    if (near_.size() == 1) {
      // Hosts that are added to these fill their leaf first.
      per_leaf = std::max(per_leaf, neighbourhood(near_.front()).hosts.size());
    } else if (!is_even()) {
      per_leaf = (placed_hosts + near_.size() - 1) / near_.size();
      const auto size = [](const Near& near) { return near.hosts.size(); };
      note(
          "leaves hold {} to {} of these hosts; plans take {} for each, so a few hosts count with a "
          "neighbouring leaf",
          size(*std::ranges::min_element(near_, {}, size)), size(*std::ranges::max_element(near_, {}, size)),
          per_leaf);
    }
    fabric.hosts_per_leaf = static_cast<int>(per_leaf);
    fabric.leaf_uplink = least_uplink();
    for (std::size_t level = 0; level < directory_.pods.size(); ++level) add_pods(level, fabric);
    fabric.citations = {{fmt::format("{} hosts a leaf, and its uplinks", per_leaf), source()},
                        {"latencies: unknown, taken as 0", source()}};
    return fabric;
  }

  /// Of pods, too, there is one number of hosts, and one uplink.
  void add_pods(std::size_t level, Fabric& fabric) {
    std::multiset<int> sizes;
    std::set<Bandwidth> uplinks;
    for (const auto& [pod, hosts] : hosts_by_pod(level)) {
      sizes.insert(hosts);
      uplinks.insert(directory_.pods[level][index(pod)].up);
    }
    const int pods = static_cast<int>(sizes.size());
    if (pods == 1) return;
    int of_each = *sizes.rbegin();
    // One that is not full comes last.
    if (static_cast<int>(sizes.count(of_each)) < pods - 1) {
      of_each = (static_cast<int>(hosts_.size() - missing_.size()) + pods - 1) / pods;
      note(
          "pods hold {} to {} of these hosts; plans take {} for each, so a few hosts count with a "
          "neighbouring pod",
          *sizes.begin(), *sizes.rbegin(), of_each);
    }
    const Bandwidth least = *uplinks.begin();
    if (!least.known()) note("uplinks of pods of {} hosts are unknown, and taken to block nothing", of_each);
    const int below = fabric.pods.empty() ? fabric.hosts_per_leaf : fabric.pods.back().hosts;
    if (of_each > below) fabric.pods.push_back({of_each, least});
  }

  Bandwidth least_uplink() {
    std::set<Bandwidth> uplinks;
    for (const Near& near : near_) uplinks.insert(neighbourhood(near).up);
    const Bandwidth least = *uplinks.begin();
    if (!least.known()) {
      note("uplinks of leaves are unknown or absent, and taken to block nothing");
    } else if (uplinks.size() > 1) {
      note("uplinks of leaves have {} to {}; plans take the least", to_text(least),
           to_text(*uplinks.rbegin()));
    }
    return least;
  }

  std::string leaves_text(const Near& near) const {
    std::vector<std::string> leaves;
    for (const int leaf : neighbourhood(near).leaves)
      leaves.push_back(map_.switches[index(directory_.leaves[index(leaf)].switch_index)].name);
    return names_text(leaves);
  }

  void note_places() {
    std::size_t rails = 0;
    for (const Near& near : near_) rails = std::max(rails, neighbourhood(near).leaves.size());
    if (rails > 1) {
      note(
          "hosts hang on up to {} leaf switches each (rails); leaves that hosts share count as one, with all "
          "of their uplinks",
          rails);
    }
    for (const Near& near : near_)
      result_.places.push_back(fmt::format("{}: {}", leaves_text(near), names_text(names(near.hosts))));
    note_planes();
    if (!missing_.empty()) {
      note("not in '{}': {}; counted after the others", map_.source, names_text(names(missing_)));
    }
  }

  /// Hosts that lack a rail, where each has a network of its own.
  void note_planes() {
    std::map<int, std::vector<std::string>> absent;
    for (const Near& near : near_) {
      for (const int host : near.hosts) {
        const HostIdentity& identity = hosts_[index(host)];
        const std::set<int> planes = directory_.planes_of(directory_.adapters_of(identity));
        for (int plane = 0; plane < static_cast<int>(map_.planes.size()); ++plane) {
          if (!planes.contains(plane)) absent[plane].push_back(identity.name);
        }
      }
    }
    for (const auto& [plane, names] : absent)
      note("not in '{}', though in another network: {}", map_.planes[index(plane)], names_text(names));
  }

  const FabricMap& map_;
  Directory directory_;
  Inventory result_;
  std::vector<HostIdentity> hosts_;
  std::vector<Near> near_;
  std::vector<int> missing_;
};

}  // namespace

Inventory placed(const Inventory& inventory, const FabricMap& map) { return Placing(inventory, map).run(); }

std::vector<PlacedLeaf> leaves_of_hosts(const Inventory& inventory, const FabricMap& map) {
  return Placing(inventory, map).leaves();
}

}  // namespace polyring
