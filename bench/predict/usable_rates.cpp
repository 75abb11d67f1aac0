#include "bench/predict/usable_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "bench/predict/expected.hpp"
#include "collectives/schedule/bound.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"
#include "topology/link_names.hpp"
#include "topology/min_cut.hpp"
#include "topology/nic_protocol.hpp"
#include "topology/processes.hpp"
#include "topology/rank_groups.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

constexpr int kHopper = 90;           // compute capability
constexpr int kFewestThatReduce = 4;  // of fewer GPUs NCCL's in-switch reduction is no faster than a ring

bool near(Bandwidth a, double gigabytes) { return std::abs(a.gigabytes_per_second() / gigabytes - 1) < 0.05; }

/// A rate that has a name.
struct Named {
  double gigabytes;
  std::string_view name;
};

std::string named(std::span<const Named> rates, Bandwidth bandwidth, std::string_view otherwise) {
  const auto found =
      std::ranges::find_if(rates, [&](const Named& rate) { return near(bandwidth, rate.gigabytes); });
  return std::string(found == rates.end() ? otherwise : found->name);
}

std::string nvlink_name(const Machine& machine, const Link& link) {
  const int capability =
      machine.gpus.empty() ? 0 : identity_of(machine.gpus.front().model).compute_capability;
  for (const NvlinkGeneration& generation : nvlink_generations()) {
    if (generation.compute_capability == capability) return fmt::format("NVLink {}", generation.version);
  }
  // 25 GB/s may be of three generations.
  const int count = nvlinks_in(machine, link);
  const Bandwidth one{count > 0 ? link.bandwidth.value / count : 0};
  constexpr std::array kRates{Named{20, "NVLink 1"}, Named{50, "NVLink 5"}};
  return named(kRates, one, "NVLink");
}

std::string xgmi_name(const Link& link) {
  constexpr std::array kRates{Named{46, "xGMI of an MI100"}, Named{50, "xGMI of an MI200"},
                              Named{64, "xGMI of an MI300"}, Named{76.8, "xGMI of an MI350"}};
  return named(kRates, {link.bandwidth.value / std::max(link.count, 1)}, "xGMI");
}

std::string pcie_name(const Link& link) {
  constexpr std::array kRates{Named{15.75, "PCIe 3"}, Named{31.5, "PCIe 4"}, Named{63, "PCIe 5"}};
  return named(kRates, link.bandwidth, "PCIe");
}

std::string class_of(const Machine& machine, const Link& link) {
  if (link.kind == LinkKind::nvlink) return nvlink_name(machine, link);
  if (link.kind == LinkKind::xgmi) return xgmi_name(link);
  if (link.kind == LinkKind::pcie) return pcie_name(link);
  return kind_name(machine, link);
}

/// Of the links that a cut crosses.
std::string class_of(const Machine& machine, const std::vector<int>& links) {
  std::set<std::string> classes;
  for (const int link : links)
    classes.insert(class_of(machine, machine.links[static_cast<std::size_t>(link)]));
  return classes.size() == 1 ? *classes.begin() : "links of several kinds";
}

/// Of the NVLinks of a domain with more GPUs than a host has: what is published of them is another class.
constexpr std::string_view kOfRack = " of a rack";
bool is_rack(const Cluster& domain) { return domain.host_count() > 1 && domain.ranks() > 8; }

/// The least that joins some GPUs of a host to its others, over what a ring uses.
std::optional<UsableRate> least_cut(const Machine& host) {
  const Machine machine = with_gpu_fabric_alone(host);
  std::optional<UsableRate> least;
  for (const auto grouping :
       {ranks_by_package, ranks_by_upper_switch, ranks_by_lower_switch, ranks_by_island, single_ranks}) {
    const std::vector<RankGroup> groups = grouping(host);
    if (groups.size() < 2) continue;
    for (const RankGroup& group : groups) {
      std::vector<bool> inside(static_cast<std::size_t>(host.ranks()));
      for (const int rank : group.ranks) inside[static_cast<std::size_t>(rank)] = true;
      const MinCut cut = min_cut(machine, inside, false);
      if (cut.unknown || !cut.bandwidth.known()) continue;
      if (!least || cut.bandwidth < least->rate)
        least = {class_of(machine, cut.links), {}, cut.bandwidth, {}};
    }
  }
  return least;
}

std::string infiniband_name(Bandwidth port) {
  constexpr std::array kRates{Named{4, "InfiniBand QDR"},    Named{6.8, "InfiniBand FDR"},
                              Named{12.1, "InfiniBand EDR"}, Named{24.2, "InfiniBand HDR"},
                              Named{48.5, "InfiniBand NDR"}, Named{97, "InfiniBand XDR"}};
  return named(kRates, port, "InfiniBand");
}

/// `sockets`: RDMA is not used, even where it is there.
std::string class_of(const Nic& nic, bool sockets) {
  const Bandwidth port = nic.ports.empty() ? Bandwidth{} : nic.ports.front().bandwidth;
  const NicProtocol protocol = protocol_of(nic);
  if (protocol == NicProtocol::infiniband) return sockets ? "IP over InfiniBand" : infiniband_name(port);
  if (!sockets && protocol != NicProtocol::ethernet) return std::string(title_of(protocol));
  return port <= gigabits_per_second(40) ? "TCP up to 40 Gb/s" : "TCP above 40 Gb/s";
}

std::string class_of_nics(const Cluster& cluster, bool sockets) {
  std::set<std::string> classes;
  for (const HostGroup& group : cluster.groups) {
    for (const int nic : usable_nics(group.machine))
      classes.insert(class_of(group.machine.nics[static_cast<std::size_t>(nic)], sockets));
  }
  return classes.size() == 1 ? *classes.begin() : "ports of several kinds";
}

/// Builds the ways of one algorithm. What it cannot know is nothing.
class Ways {
 public:
  explicit Ways(const Cluster& cluster)
      : cluster_(cluster),
        ranks_(cluster.ranks()),
        hosts_(cluster.domain_count()),
        network_(hosts_ > 1 ? network_bound(cluster, kExpectedPayload) : Bound{}) {
    for (const HostGroup& group : cluster.groups) {
      has_gpus_ = has_gpus_ || (!group.machine.gpus.empty() && !has_processes(group.machine));
      const Cluster domain = one_domain(cluster, group.machine);
      if (!has_inside(domain)) continue;
      inside_ = true;
      const Bound bound = usual_bound(Collective::allreduce, domain, kExpectedPayload);
      auto cut = least_cut(group.machine);
      if (cut && is_rack(domain)) cut->link += kOfRack;
      known_ = known_ && cut && bound.time.value > 0;
      if (!known_) return;
      const Bandwidth whole = bus_bandwidth(kExpectedPayload, ranks_, bound.time);
      if (!cut_.rate.known() || cut->rate < cut_.rate) cut_ = {cut->link, {}, cut->rate, bound.cut};
      if (!bound_.rate.known() || whole < bound_.rate) bound_ = {cut->link, {}, whole, bound.cut};
    }
    known_ = known_ && (hosts_ < 2 || (network_.time.value > 0 && std::isfinite(network_.time.value)));
  }

  int hosts() const { return hosts_; }
  bool has_gpus() const { return has_gpus_; }
  /// Whether anything can be said: there is somebody to talk to, and all speeds on the way are known.
  bool known() const { return known_ && ranks_ > 1 && (hosts_ > 1 || (inside_ && has_gpus_)); }
  bool reduce() const {
    return std::ranges::all_of(cluster_.groups,
                               [](const HostGroup& group) { return switches_reduce(group.machine); });
  }

  /// A ring, as long as all ranks.
  UsableWay ring() const {
    return way("ring", cut_, [&] { return network("ring", false, network_.bandwidth); });
  }
  /// What moves the least bytes over each link, as multi-ring does.
  UsableWay least_bytes(std::string_view implementation, bool sockets = false) const {
    return way(implementation, bound_, [&] {
      return network(implementation, sockets, bus_bandwidth(kExpectedPayload, ranks_, network_.time));
    });
  }
  /// NCCL's two trees: over three hosts and more each sends its payload down to two others, half of it each.
  UsableWay tree() const {
    return way(hosts_ > 1 ? "tree" : "tree inside a host", cut_, [&] { return tree_network(); });
  }
  UsableWay in_switches() const {
    UsableRate rate{"", hosts_ > 1 ? "in-switch tree" : "in-switch", {}, {}};
    for (const HostGroup& group : cluster_.groups) {
      const Machine& machine = group.machine;
      const Cluster domain = one_domain(cluster_, machine);
      const double gpus = domain.ranks();
      for (const Link& link : machine.links) {
        if (link.to.kind != DeviceKind::nvswitch && link.from.kind != DeviceKind::nvswitch) continue;
        const Bandwidth reached = 2.0 * (ranks_ - 1) / ranks_ / (1 + 1 / gpus) * link.bandwidth;
        if (rate.rate.known() && reached >= rate.rate) continue;
        rate.link = class_of(machine, link) + (is_rack(domain) ? std::string(kOfRack) : "");
        rate.rate = reached;
        rate.limit = fmt::format("(1 + 1/{}) of the payload crosses the {} of each GPU", gpus,
                                 to_text(link.bandwidth));
      }
    }
    UsableWay way{rate};
    if (hosts_ > 1) way.push_back(tree_network());
    return way;
  }

 private:
  static bool has_inside(const Cluster& domain) {
    return domain.ranks() > 1 && !has_processes(domain.host(0));
  }

  template <typename Network>
  UsableWay way(std::string_view implementation, UsableRate inside, Network network) const {
    UsableWay way;
    inside.implementation = implementation;
    if (inside_) way.push_back(std::move(inside));
    if (hosts_ > 1) way.push_back(network());
    return way;
  }

  UsableRate network(std::string_view implementation, bool sockets, Bandwidth rate) const {
    return {class_of_nics(cluster_, sockets), std::string(implementation), rate, network_.cut};
  }
  UsableRate tree_network() const {
    const double sent = hosts_ == 2 ? 1 : 2;  // of the payload, out of each host
    return network("tree", false, 2.0 * (ranks_ - 1) / ranks_ / sent * network_.bandwidth);
  }

  const Cluster& cluster_;
  int ranks_;
  int hosts_;
  Bound network_;
  bool known_ = true;
  bool inside_ = false;  // some host has several GPUs
  bool has_gpus_ = false;
  UsableRate cut_;
  UsableRate bound_;
};

/// NCCL chooses by size and hosts: trees over two hosts, rings over more, and inside a host what is faster.
std::vector<UsableWay> nccl_ways(const Ways& ways, std::string_view algorithm) {
  if (!ways.has_gpus()) return {};
  if (algorithm == "nccl:ring") return {ways.ring()};
  if (algorithm == "nccl:tree") return {ways.tree()};
  const bool reduces = ways.reduce();
  if (algorithm == "nccl:nvls" || algorithm == "nccl:nvlstree")
    return reduces ? std::vector<UsableWay>{ways.in_switches()} : std::vector<UsableWay>{};
  if (algorithm != "nccl") return {};
  std::vector<UsableWay> all{ways.hosts() == 2 ? ways.tree() : ways.ring()};
  if (reduces && ways.hosts() <= 2) all.push_back(ways.in_switches());
  return all;
}

}  // namespace

bool switches_reduce(const Machine& machine) {
  if (machine.nvswitches == 0 || machine.ranks() < kFewestThatReduce) return false;
  for (const Gpu& gpu : machine.gpus) {
    if (identity_of(gpu.model).compute_capability < kHopper) return false;
  }
  return ranks_by_island(machine).size() == 1;
}

std::vector<UsableWay> usable_ways(const Cluster& cluster, Collective collective,
                                   std::string_view algorithm) {
  if (collective == Collective::alltoall) return {};
  const Ways ways(cluster);
  if (!ways.known()) return {};
  const bool ring = algorithm == "ring" || algorithm == "nccl:ring";
  if (collective != Collective::allreduce) {
    // Each link carries what it does in one half of an allreduce.
    const bool known = ring || algorithm == "multi-ring" || (algorithm == "nccl" && ways.has_gpus());
    return known ? std::vector<UsableWay>{ways.ring()} : std::vector<UsableWay>{};
  }
  if (algorithm == "ring") return {ways.ring()};
  if (algorithm == "multi-ring") return {ways.least_bytes("ring")};
  if (algorithm == "halving-doubling") return {ways.least_bytes(algorithm)};
  if (algorithm == "mpi" || algorithm.starts_with("mpi:")) return {ways.least_bytes("mpi")};
  if (algorithm.starts_with("gloo") && ways.hosts() > 1 && !ways.has_gpus())
    return {ways.least_bytes("gloo", true)};
  return nccl_ways(ways, algorithm);
}

}  // namespace polyring
