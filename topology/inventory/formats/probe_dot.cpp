#include "topology/inventory/formats/probe_dot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/inventory/formats/dot.hpp"
#include "topology/link_names.hpp"
#include "topology/path.hpp"
#include "topology/shared_links.hpp"

namespace polyring {
namespace {

constexpr std::string_view kDownPort = "color=red, fontcolor=red, style=dashed";

/// Colours that colour-blind readers tell apart (Okabe and Ito, https://jfly.uni-koeln.de/color/).
std::string_view colour(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "#009E73";
    case LinkKind::xgmi:
      return "#E69F00";
    case LinkKind::c2c:
      return "#CC79A7:#CC79A7";  // two lines side by side
    case LinkKind::socket_bus:
      return "#0072B2";
    case LinkKind::pcie:
    case LinkKind::memory:
      return "#3A4652";
  }
  return "";
}

std::string cores_text(int cores) {
  return cores == 0 ? "" : fmt::format("{} core{}", cores, cores == 1 ? "" : "s");
}

std::string memory_text(Bytes memory, Bandwidth bandwidth) {
  if (memory.value == 0) return "";
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 29;
  return fmt::format("{} GiB at {}", (memory.value + kHalf) >> 30, to_text(bandwidth));
}

std::string package_text(bool known) { return known ? "" : "package ?"; }

/// The graph of one kind of host. Names of its nodes begin with `prefix`.
class HostGraph {
 public:
  HostGraph(const Machine& machine, std::string prefix) : machine_(machine), prefix_(std::move(prefix)) {}

  std::string text(int count) const {
    const std::string alike = count == 1 ? "" : fmt::format(" × {}", count);
    std::string out = fmt::format("  subgraph cluster_{} {{\n    {}\n", prefix_,
                                  dot::label({machine_.name + alike, machine_.model}));
    // Graphviz puts the last cluster to the left, and draws an edge twice that leads to the left from there.
    for (int i = static_cast<int>(machine_.packages.size()) - 1; i >= 0; --i) {
      out += fmt::format("    subgraph cluster_{} {{\n      label=\"\"\n", node({DeviceKind::package, i}));
      out += nodes(i, "      ") + "    }\n";
    }
    out += nodes(std::nullopt, "    ");
    for (const Link& link : machine_.links) out += edge(link);
    return out + "  }\n";
  }

  /// Edges from the ports that are up to a node of the fabric.
  std::string uplinks(std::string_view to) const {
    std::string out;
    for (std::size_t i = 0; i < machine_.nics.size(); ++i) {
      for (std::size_t p = 0; p < machine_.nics[i].ports.size(); ++p) {
        const Port& port = machine_.nics[i].ports[p];
        if (port.up) out += fmt::format("  {} -- {} [{}]\n", port_node(i, p), to, dot::width(port.bandwidth));
      }
    }
    return out;
  }

 private:
  std::string node(DeviceId id) const {
    constexpr std::array<std::string_view, 5> kKinds{"package", "switch", "nvswitch", "gpu", "nic"};
    return fmt::format("{}_{}{}", prefix_, kKinds.at(static_cast<std::size_t>(id.kind)), id.index);
  }

  std::string port_node(std::size_t nic, std::size_t port) const {
    return fmt::format("{}_port{}", node({DeviceKind::nic, static_cast<int>(nic)}), port);
  }

  /// Hops to the nearest package, and which it is; no package where several are equally near.
  std::pair<std::size_t, std::optional<int>> home(DeviceId device) const {
    if (device.kind == DeviceKind::package) return {0, device.index};
    std::pair<std::size_t, std::optional<int>> nearest{SIZE_MAX, std::nullopt};
    for (int i = 0; i < static_cast<int>(machine_.packages.size()); ++i) {
      const auto path = find_path(machine_, device, {DeviceKind::package, i});
      if (!path || path->hops.size() > nearest.first) continue;
      const bool tie = path->hops.size() == nearest.first;
      nearest = {path->hops.size(), tie ? std::nullopt : std::optional(i)};
    }
    return nearest;
  }

  std::string description(DeviceId id) const {
    const auto index = static_cast<std::size_t>(id.index);
    const std::string name = machine_.device_name(id);
    switch (id.kind) {
      case DeviceKind::package: {
        const Package& package = machine_.packages[index];
        return dot::label({name, package.model, cores_text(package.cores),
                           memory_text(package.memory, package.memory_bandwidth)});
      }
      case DeviceKind::pci_switch:
        return dot::label({name, machine_.switches[index].pci}) + ", fillcolor=\"#EEF1F4\"";
      case DeviceKind::nvswitch:
        return dot::label({name}) + ", fillcolor=\"#D5EFE5\"";
      case DeviceKind::gpu: {
        const Gpu& gpu = machine_.gpus[index];
        return dot::label({name, gpu.model, gpu.pci, memory_text(gpu.memory, gpu.memory_bandwidth),
                           package_text(gpu.package_known)}) +
               ", fillcolor=\"#E3F4EE\"";
      }
      case DeviceKind::nic: {
        const Nic& nic = machine_.nics[index];
        const std::string link_layer{nic.kind == NicKind::unknown ? "" : to_text(nic.kind)};
        return dot::label({name, nic.model, link_layer, nic.pci, package_text(nic.package_known)}) +
               ", fillcolor=\"#FDF3DC\"";
      }
    }
    return "";
  }

  /// The nodes of all devices whose nearest package is this one, or that have no nearest one.
  std::string nodes(std::optional<int> package, const std::string& indent) const {
    std::vector<DeviceId> devices;
    const auto add = [&](DeviceKind kind, std::size_t count) {
      for (int i = 0; i < static_cast<int>(count); ++i) {
        if (home({kind, i}).second == package) devices.push_back({kind, i});
      }
    };
    add(DeviceKind::package, machine_.packages.size());
    add(DeviceKind::pci_switch, machine_.switches.size());
    add(DeviceKind::gpu, machine_.gpus.size());
    add(DeviceKind::nvswitch, static_cast<std::size_t>(machine_.nvswitches));
    add(DeviceKind::nic, machine_.nics.size());
    std::string out;
    for (const DeviceId id : devices) {
      out += fmt::format("{}{} [{}]\n", indent, node(id), description(id));
      if (id.kind == DeviceKind::nic) out += ports(static_cast<std::size_t>(id.index), indent);
    }
    return out;
  }

  std::string ports(std::size_t nic, const std::string& indent) const {
    std::string out;
    for (std::size_t p = 0; p < machine_.nics[nic].ports.size(); ++p) {
      const Port& port = machine_.nics[nic].ports[p];
      const std::string state = port.up ? to_text(port.bandwidth) : "DOWN";
      const std::string marks = port.up ? "" : fmt::format(", {}", kDownPort);
      out += fmt::format("{}{} [{}, shape=ellipse{}]\n", indent, port_node(nic, p),
                         dot::label({fmt::format("port {}", port.number), state}), marks);
      out += fmt::format("{}{} -- {} [{}]\n", indent, node({DeviceKind::nic, static_cast<int>(nic)}),
                         port_node(nic, p), port.up ? dot::width(port.bandwidth) : std::string(kDownPort));
    }
    return out;
  }

  /// Graphviz draws the first end of an edge above the second, unless told that an edge is no constraint.
  std::string edge(const Link& link) const {
    const auto height = [&](DeviceId id) {
      // Packages, switches, GPUs, NVSwitches, NICs from above to below.
      constexpr std::array<int, 5> kRows{0, 1, 3, 2, 4};
      return std::pair(kRows.at(static_cast<std::size_t>(id.kind)), home(id).first);
    };
    DeviceId upper = link.from;
    DeviceId lower = link.to;
    if (height(upper) > height(lower)) std::swap(upper, lower);
    const bool beside = height(upper) == height(lower);
    const char* shared = shared_with(machine_, link).empty() ? "" : ", shared";
    return fmt::format("    {} -- {} [{}, color=\"{}\", {}{}]\n", node(upper), node(lower),
                       dot::label({fmt::format("{} {}{}", to_text(link.kind), speed_or_count(link), shared)}),
                       colour(link.kind), dot::width(link.bandwidth), beside ? ", constraint=false" : "");
  }

  const Machine& machine_;
  std::string prefix_;
};

/// Leaf switches and the spine above them; one switch where no leaves are known.
std::string fabric_nodes(const Fabric& fabric) {
  if (fabric.hosts_per_leaf == 0) return "  leaf [label=\"one switch that blocks nothing\"]\n";
  std::string nodes =
      fmt::format("  leaf [label=\"leaf switches\\nof {} hosts each\"]\n", fabric.hosts_per_leaf);
  std::string below = "leaf";
  Bandwidth uplink = fabric.leaf_uplink;
  const auto join = [&](const std::string& above) {
    nodes += fmt::format("  {} -- {} [label=\"{}\", {}]\n", below, above,
                         uplink.known() ? to_text(uplink) : "blocks nothing",
                         uplink.known() ? dot::width(uplink) : std::string("style=dotted"));
    below = above;
  };
  for (const Pods& pods : fabric.pods) {
    const std::string name = fmt::format("pod{}", pods.hosts);
    nodes += fmt::format("  {} [label=\"pods\\nof {} hosts each\"]\n", name, pods.hosts);
    join(name);
    uplink = pods.uplink;
  }
  nodes += "  spine [label=\"spine\"]\n";
  join("spine");
  return nodes;
}

}  // namespace

std::string probe_dot(const Cluster& cluster) {
  std::string out = dot::head(cluster.name);
  // What is known of a fabric is the same for one host; without leaves it would be a guess there.
  const bool has_fabric = cluster.host_count() > 1 || cluster.fabric.hosts_per_leaf > 0;
  std::string uplinks;
  for (std::size_t i = 0; i < cluster.groups.size(); ++i) {
    const HostGraph graph(cluster.groups[i].machine, fmt::format("h{}", i));
    out += graph.text(cluster.groups[i].count);
    if (has_fabric) uplinks += graph.uplinks("leaf");
  }
  if (has_fabric) out += fabric_nodes(cluster.fabric) + uplinks;
  return out + "}\n";
}

}  // namespace polyring
