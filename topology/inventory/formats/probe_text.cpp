#include "topology/inventory/formats/probe_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "topology/link_names.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

std::string or_unknown(const std::string& text) { return text.empty() ? "?" : text; }

/// Whole GiB, as memory is sold; `?` when unknown.
std::string memory_text(Bytes memory) {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  return memory.value == 0 ? "? GiB"
                           : fmt::format("{:.0f} GiB", static_cast<double>(memory.value) / kGibibyte);
}

std::string describe(const Package& package) {
  const std::string numa =
      package.numa_nodes.empty() ? "?" : fmt::format("{}", fmt::join(package.numa_nodes, ","));
  const std::string cores = package.cores == 0 ? "?" : fmt::format("{}", package.cores);
  return fmt::format("{}, {} core{}, {} at {}, NUMA {}", or_unknown(package.model), cores,
                     package.cores == 1 ? "" : "s", memory_text(package.memory),
                     to_text(package.memory_bandwidth), numa);
}

/// Few presets have addresses.
std::string pci_text(const std::string& address) { return address.empty() ? "" : ", PCI " + address; }

constexpr const char* kAssumed = " assumed";  // behind a rate

const char* package_text(bool known) { return known ? "" : ", package ?"; }

std::string describe(const Gpu& gpu) {
  return fmt::format("{}{}, {} at {}{}", or_unknown(gpu.model), pci_text(gpu.pci), memory_text(gpu.memory),
                     to_text(gpu.memory_bandwidth), package_text(gpu.package_known));
}

std::string describe(const Nic& nic) {
  std::vector<std::string> ports;
  for (const Port& port : nic.ports) {
    ports.push_back(fmt::format("port {} {} {}{}", port.number, port.up ? "up" : "DOWN",
                                to_text(port.bandwidth), port.assumed ? kAssumed : ""));
  }
  if (ports.empty()) ports.emplace_back("ports ?");
  const std::string_view kind = nic.kind == NicKind::unknown ? "link layer ?" : to_text(nic.kind);
  return fmt::format("{}, {}{}, {}{}", or_unknown(nic.model), kind, pci_text(nic.pci), fmt::join(ports, ", "),
                     package_text(nic.package_known));
}

/// "pcie 31.5 GB/s shared with mlx5_1".
std::string describe(const Machine& machine, const Link& link) {
  const std::vector<std::string> others = shared_with(machine, link);
  return fmt::format("{} {}{}{}{}", to_text(link.kind), speed_or_count(link), link.assumed ? kAssumed : "",
                     others.empty() ? "" : " shared with ", fmt::join(others, ", "));
}

std::string describe(const Machine& machine, DeviceId id) {
  const auto index = static_cast<std::size_t>(id.index);
  switch (id.kind) {
    case DeviceKind::package:
      return describe(machine.packages[index]);
    case DeviceKind::pci_switch:
      return "PCIe switch" + pci_text(machine.switches[index].pci);
    case DeviceKind::nvswitch:
      return "NVSwitch";
    case DeviceKind::gpu:
      return describe(machine.gpus[index]);
    case DeviceKind::nic:
      return describe(machine.nics[index]);
  }
  return {};
}

/// The links of a machine sorted into a tree under the packages, and the rest.
class Tree {
 public:
  explicit Tree(const Machine& machine) : machine_(machine) {
    for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i)
      placed_.insert({DeviceKind::package, i});
    // First what hangs on PCIe; a GPU that has no PCIe link hangs on its NVLink to the package.
    grow({LinkKind::pcie});
    grow({LinkKind::pcie, LinkKind::nvlink, LinkKind::xgmi, LinkKind::c2c});
  }

  std::string text() const {
    std::string out;
    for (int i = 0; i < static_cast<int>(machine_.packages.size()); ++i) {
      const DeviceId package{DeviceKind::package, i};
      out += fmt::format("  {}  {}\n", machine_.device_name(package), describe(machine_, package));
      append_children(out, package, "  ");
    }
    return out;
  }

  std::string other_links() const {
    std::string out;
    for (std::size_t i = 0; i < machine_.links.size(); ++i) {
      if (in_tree_.contains(i)) continue;
      const Link& link = machine_.links[i];
      out += fmt::format("    {} - {}  {}\n", machine_.device_name(link.from), machine_.device_name(link.to),
                         describe(machine_, link));
    }
    return out.empty() ? out : "  other links\n" + out;
  }

 private:
  struct Child {
    DeviceId device;
    std::size_t link;
  };

  /// Places devices below those that are placed already, over links of these kinds, until nothing changes.
  void grow(const std::vector<LinkKind>& kinds) {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < machine_.links.size(); ++i) {
        const Link& link = machine_.links[i];
        if (std::ranges::find(kinds, link.kind) == kinds.end()) continue;
        changed |= place(link.from, link.to, i) || place(link.to, link.from, i);
      }
    }
  }

  bool place(DeviceId device, DeviceId parent, std::size_t link) {
    const bool is_parent = parent.kind == DeviceKind::package || parent.kind == DeviceKind::pci_switch;
    if (!is_parent || !placed_.contains(parent) || !placed_.insert(device).second) return false;
    children_[parent].push_back({device, link});
    in_tree_.insert(link);
    return true;
  }

  void append_children(std::string& out, DeviceId parent, const std::string& indent) const {
    const auto children = children_.find(parent);
    if (children == children_.end()) return;
    for (const Child& child : children->second) {
      const bool last = &child == &children->second.back();
      const Link& link = machine_.links[child.link];
      out += fmt::format("{}{} {} -> {}  {}\n", indent, last ? "└─" : "├─", describe(machine_, link),
                         machine_.device_name(child.device), describe(machine_, child.device));
      append_children(out, child.device, indent + (last ? "   " : "│  "));
    }
  }

  const Machine& machine_;
  std::set<DeviceId> placed_;
  std::set<std::size_t> in_tree_;
  std::map<DeviceId, std::vector<Child>> children_;
};

std::string sources_text(const std::vector<Citation>& citations) {
  std::string out;
  for (const Citation& citation : citations)
    out += fmt::format("    {} [{}]\n", citation.fact, citation.source);
  return out;
}

/// What a live probe read, what it could not, and what somebody should look at.
std::string notes_text(const Machine& machine) {
  std::string out;
  for (const ProbeSource& source : machine.sources)
    out += fmt::format("    {} {}: {}\n", source.read ? "read  " : "absent", source.name, source.detail);
  if (!out.empty()) out = "  probed\n" + out;
  if (!machine.remarks.empty()) out += "  look at\n";
  for (const std::string& remark : machine.remarks) out += fmt::format("    {}\n", remark);
  return out;
}

std::string fabric_text(const Fabric& fabric) {
  std::string out = "fabric: ";
  if (fabric.hosts_per_nvlink_domain > 1)
    out += fmt::format("NVSwitches join {} to an NVLink domain; between domains ",
                       counted(fabric.hosts_per_nvlink_domain, "host"));
  if (fabric.hosts_per_leaf == 0) {
    out += "one switch that blocks nothing";
  } else if (fabric.leaf_uplink.known()) {
    out += fmt::format("leaves of {} with {} to the spine", counted(fabric.hosts_per_leaf, "host"),
                       to_text(fabric.leaf_uplink));
  } else {
    out +=
        fmt::format("leaves of {} under a spine that blocks nothing", counted(fabric.hosts_per_leaf, "host"));
  }
  for (const Pods& pods : fabric.pods) {
    out += fmt::format(", pods of {} hosts {}", pods.hosts,
                       pods.uplink.known() ? "with " + to_text(pods.uplink) + " up" : "that block nothing");
  }
  out += fabric.latency.value > 0 ? fmt::format("; {} from NIC to NIC", to_text(fabric.latency))
                                  : "; latency from NIC to NIC unknown, taken as 0";
  if (fabric.hosts_per_leaf > 0 && fabric.spine_latency.value > 0)
    out += fmt::format(", {} more over the spine", to_text(fabric.spine_latency));
  return out + "\n";
}

}  // namespace

std::string probe_text(const Cluster& cluster) { return probe_text(cluster, cluster); }

std::string probe_text(const Cluster& cluster, const Cluster& whole) {
  std::string out =
      fmt::format("{}: {} host{}, {} rank{}\n", whole.name, whole.host_count(),
                  whole.host_count() == 1 ? "" : "s", whole.ranks(), whole.ranks() == 1 ? "" : "s");
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    out += fmt::format("\nhost {}  {}{}\n", machine.name, or_unknown(machine.model),
                       group.count == 1 ? "" : fmt::format(", {} equal", group.count));
    const Tree tree(machine);
    out += tree.text() + tree.other_links() + notes_text(machine);
    if (!machine.citations.empty()) out += "  sources\n" + sources_text(machine.citations);
  }
  out += "\n" + fabric_text(cluster.fabric);
  if (!cluster.fabric.citations.empty()) out += "  sources\n" + sources_text(cluster.fabric.citations);
  return out;
}

}  // namespace polyring
