#include "topology/what_if.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/link_names.hpp"
#include "topology/rails.hpp"
#include "topology/rank_gpus.hpp"
#include "topology/rank_nics.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

std::vector<int> usable_and_up(const Machine& machine) {
  std::vector<int> nics = usable_nics(machine);
  std::erase_if(nics, [&](int nic) { return !machine.nics[index(nic)].up(); });
  return nics;
}

bool is_nic(DeviceId id, int nic) { return id.kind == DeviceKind::nic && id.index == nic; }

/// With these NICs alone, in this order; the links that remain.
Machine with_only_nics(const Machine& machine, const std::vector<int>& nics) {
  Machine result = machine;
  result.nics.clear();
  std::vector<int> place(machine.nics.size(), -1);
  for (const int nic : nics) {
    place[index(nic)] = static_cast<int>(result.nics.size());
    result.nics.push_back(machine.nics[index(nic)]);
  }
  const auto is_gone = [&](DeviceId id) { return id.kind == DeviceKind::nic && place[index(id.index)] < 0; };
  std::erase_if(result.links, [&](const Link& link) { return is_gone(link.from) || is_gone(link.to); });
  for (Link& link : result.links) {
    for (DeviceId* end : {&link.from, &link.to})
      if (end->kind == DeviceKind::nic) end->index = place[index(end->index)];
  }
  return result;
}

/// "mlx5_" of "mlx5_3".
std::string prefix_of(const std::string& name) {
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

/// `prefix` and the first number that no device has.
std::string free_name(const Machine& machine, const std::string& prefix) {
  for (int number = 0;; ++number) {
    std::string name = fmt::format("{}{}", prefix, number);
    if (std::ranges::find(machine.nics, name, &Nic::name) == machine.nics.end()) return name;
  }
}

void become(Machine& machine, int nic, const presets::NicPart& part) {
  Nic& one = machine.nics[index(nic)];
  if (one.kind != part.kind) {
    one.name.clear();
    const std::string usual{part.kind == NicKind::infiniband ? "mlx5_" : "eth"};
    one.name = free_name(machine, part.device.empty() ? usual : part.device);
  }
  one.kind = part.kind;
  one.model = part.model;
  one.ports = {{1, true, part.port}};
}

/// A NIC like this one beside it, by links of its own.
void add_like(Machine& machine, int nic) {
  Nic copy = machine.nics[index(nic)];
  copy.name = free_name(machine, prefix_of(copy.name));
  copy.pci.clear();
  copy.system_guid.clear();
  for (Port& port : copy.ports) port.guid.clear();
  const DeviceId id{DeviceKind::nic, static_cast<int>(machine.nics.size())};
  machine.nics.push_back(std::move(copy));
  const std::size_t links = machine.links.size();
  for (std::size_t i = 0; i < links; ++i) {
    Link link = machine.links[i];
    if (!is_nic(link.from, nic) && !is_nic(link.to, nic)) continue;
    (is_nic(link.from, nic) ? link.from : link.to) = id;
    machine.links.push_back(link);
  }
}

/// On a package, by the widest PCIe link that the machine has.
void add_on_package(Machine& machine, int package, const presets::NicPart& part) {
  const Link* widest = nullptr;
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::pcie && (widest == nullptr || link.bandwidth > widest->bandwidth))
      widest = &link;
  }
  if (widest == nullptr || !widest->bandwidth.known()) {
    usage_error(
        "machine '{}' has neither NICs nor PCIe links of known bandwidth, so nothing tells what new NICs "
        "would "
        "hang on; describe it in a TOML file",
        machine.name);
  }
  const std::vector<int>& numa = machine.packages[index(package)].numa_nodes;
  const Link link = *widest;
  const DeviceId id{DeviceKind::nic, static_cast<int>(machine.nics.size())};
  machine.nics.push_back({free_name(machine, part.device.empty() ? "mlx5_" : part.device),
                          part.model,
                          "",
                          numa.empty() ? -1 : numa.front(),
                          -1,
                          part.kind,
                          {{1, true, part.port}}});
  machine.links.push_back(
      {id, {DeviceKind::package, package}, LinkKind::pcie, link.bandwidth, link.latency, 0, link.assumed});
}

/// Which of `old` NICs the further ones are like: evenly over all.
std::vector<int> spread(int more, int old) {
  std::vector<int> like;
  if (old == 0) return like;
  for (; more >= old; more -= old) {
    for (int nic = 0; nic < old; ++nic) like.push_back(nic);
  }
  for (int i = 0; i < more; ++i) like.push_back(i * old / more);
  return like;
}

std::vector<int> not_in(std::vector<int> numbers, const std::vector<int>& others) {
  std::erase_if(numbers, [&](int number) { return std::ranges::find(others, number) != others.end(); });
  return numbers;
}

/// Says which NICs have links into their host that carry less than they do.
std::string narrower_links(const Machine& machine) {
  std::vector<std::string> names;
  for (const int nic : usable_nics(machine)) {
    Bandwidth into_host;
    for (const Link& link : machine.links) {
      if (is_nic(link.from, nic) || is_nic(link.to, nic)) into_host = into_host + link.bandwidth;
    }
    const Nic& one = machine.nics[index(nic)];
    if (into_host.known() && into_host < one.bandwidth())
      names.push_back(fmt::format("{} by PCIe of {}", one.name, to_text(into_host)));
  }
  return names.empty() ? "" : fmt::format(", which reach the host more slowly ({})", fmt::join(names, ", "));
}

Bandwidth uplink_of_leaf(const Cluster& cluster) {
  if (cluster.fabric.leaf_uplink.known()) return cluster.fabric.leaf_uplink;
  return cluster.fabric.hosts_per_leaf * network_bandwidth(cluster.host(0));
}

/// That a fabric blocks nothing is no longer true.
void set_uplink(Fabric& fabric, Bandwidth uplink, std::string fact, std::string source) {
  fabric.leaf_uplink = uplink;
  std::erase_if(fabric.citations, [](const Citation& citation) {
    return citation.fact.find("blocks nothing") != std::string::npos ||
           citation.fact.find("block nothing") != std::string::npos;
  });
  fabric.citations.push_back({std::move(fact), std::move(source)});
}

void refuse_without_leaves(const Cluster& cluster, std::string_view what) {
  if (cluster.fabric.hosts_per_leaf > 0) return;
  usage_error(
      "how many hosts a leaf switch of '{}' has is unknown, and so {}; say it in a TOML file by fabric = {{ "
      "hosts_per_leaf = 16 }}",
      cluster.name, what);
}

void refuse_unknown_nics(const Machine& machine) {
  if (network_bandwidth(machine).known()) return;
  usage_error("what the NICs of machine '{}' carry is unknown; say it first", machine.name);
}

}  // namespace

Machine with_gpus_per_host(const Machine& machine, int gpus) {
  const auto known = std::ssize(machine.gpus);
  if (gpus < 1 || gpus > known) {
    usage_error(
        "{} GPUs of each host were asked for, but machine '{}' has {}; give {}, or describe it in a TOML "
        "file",
        gpus, machine.name, known,
        known == 0 ? "a machine with GPUs" : fmt::format("a number from 1 to {}", known));
  }
  Machine smaller = with_gpus(machine, gpus);
  smaller.citations.push_back(
      {fmt::format("{} of {} GPUs of a host are used", gpus, known), std::string(kAsAsked)});
  return smaller;
}

NicProtocol nic_protocol_of(const Machine& machine) {
  const std::vector<int> nics = usable_nics(machine);
  return nics.empty() ? NicProtocol::ethernet : protocol_of(machine.nics[index(nics.front())]);
}

Machine with_nics(const Machine& machine, int count, const std::optional<presets::NicPart>& part) {
  const std::vector<int> old = part ? usable_nics(machine) : usable_and_up(machine);
  const int known = static_cast<int>(old.size());
  if (known == 0 && !part) {
    usage_error(
        "no NIC of machine '{}' is known to be up, so nothing tells what {} would carry; give their rate",
        machine.name, counted(count, "NIC"));
  }
  Machine all = machine;
  for (int nic = 0; nic < static_cast<int>(all.nics.size()); ++nic) {
    if (std::ranges::binary_search(old, nic)) {
      if (part) become(all, nic, *part);
    } else {
      for (Port& port : all.nics[index(nic)].ports) port.up = false;
    }
  }
  const std::vector<int> gone = count < known ? not_in(old, rail_nics(all, count)) : std::vector<int>{};
  std::vector<int> rest(all.nics.size());
  std::iota(rest.begin(), rest.end(), 0);
  Machine result = with_only_nics(all, not_in(rest, gone));
  const std::vector<int> like = usable_nics(result);
  for (const int nic : spread(known > 0 ? std::max(0, count - known) : 0, known))
    add_like(result, like[index(nic)]);
  const int packages = static_cast<int>(result.packages.size());
  for (int i = 0; known == 0 && i < count; ++i) add_on_package(result, i * packages / count, *part);
  result.validate();
  if (part) result.citations.push_back(part->citation);
  result.citations.push_back({fmt::format("NICs of a host: {} in place of {}{}", nics_text(result),
                                          nics_text(machine), narrower_links(result)),
                              std::string(kAsAsked)});
  return result;
}

Bandwidth network_bandwidth(const Machine& machine) {
  Bandwidth sum;
  for (const int nic : usable_nics(machine)) {
    const Bandwidth one = machine.nics[index(nic)].bandwidth();
    if (!one.known()) return {};
    sum = sum + one;
  }
  return sum;
}

std::string nics_text(const Machine& machine) {
  std::map<double, int> numbers;
  for (const int nic : usable_nics(machine)) ++numbers[-machine.nics[index(nic)].bandwidth().value];
  std::vector<std::string> parts;
  for (const auto& [bandwidth, number] : numbers)
    parts.push_back(fmt::format("{} of {}", number, to_text(Bandwidth{-bandwidth})));
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, " and "));
}

double parse_oversubscription(std::string_view text, std::string_view what) {
  const auto check = [&](bool good) {
    if (!good) usage_error("{} '{}' is not a ratio; write it as 2 or 2:1", what, text.substr(0, 64));
  };
  const auto number = [&](std::string_view part) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    check(error == std::errc{} && end == part.data() + part.size() && std::isfinite(value) && value > 0);
    return value;
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return number(text);
  const double ratio = number(text.substr(0, colon)) / number(text.substr(colon + 1));
  check(std::isfinite(ratio) && ratio > 0);
  return ratio;
}

Cluster with_oversubscription(Cluster cluster, double ratio) {
  constexpr double kMost = 1000;
  if (!(ratio >= 1 && ratio <= kMost)) {
    usage_error(
        "an oversubscription of {} is none; give 1 to {}, such as 2 for half of what the hosts can fill",
        ratio, kMost);
  }
  refuse_without_leaves(cluster, "what its uplinks carry when they are oversubscribed");
  refuse_unknown_nics(cluster.host(0));
  const int hosts = cluster.fabric.hosts_per_leaf;
  const Bandwidth uplink = (hosts / ratio) * network_bandwidth(cluster.host(0));
  set_uplink(cluster.fabric, uplink,
             fmt::format("leaves of {} are oversubscribed {}:1, with {} to the spine", counted(hosts, "host"),
                         significant(ratio), to_text(uplink)),
             std::string(kAsAsked));
  return cluster;
}

Cluster without_leaf_uplink(Cluster cluster) {
  refuse_without_leaves(cluster, "how many uplinks it has");
  const Machine& host = cluster.host(0);
  refuse_unknown_nics(host);
  const std::vector<int> nics = usable_nics(host);
  const Bandwidth one = host.nics[index(nics.front())].bandwidth();
  const Bandwidth all = uplink_of_leaf(cluster);
  const double uplinks = std::round(all.value / one.value);
  if (uplinks < 2) {
    usage_error(
        "a leaf switch of '{}' has one uplink, and without it no other leaf is reached; leave it there",
        cluster.name);
  }
  const Bandwidth rest = ((uplinks - 1) / uplinks) * all;
  set_uplink(cluster.fabric, rest,
             fmt::format("{} of {} uplinks of each leaf are left, {}", uplinks - 1, uplinks, to_text(rest)),
             fmt::format("{}; an uplink is taken to carry as much as a NIC", kAsAsked));
  return cluster;
}

}  // namespace polyring
