#include "topology/path.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"

namespace polyring {
namespace {

bool is_gpu_fabric(LinkKind kind) { return kind == LinkKind::nvlink || kind == LinkKind::xgmi; }

/// Whether a transfer that starts and ends elsewhere may cross this device.
bool passes(DeviceKind kind, bool gpu_fabric_only) {
  if (gpu_fabric_only) return kind == DeviceKind::nvswitch;
  return kind != DeviceKind::gpu && kind != DeviceKind::nic;
}

/// How a device was reached first: over which hop, and the narrowest hop so far.
struct Reached {
  int distance = 0;
  double width = 0;
  Hop hop;
  double last = 0;  // what this hop carries

  bool is_wider_than(const Reached& other) const {
    return std::pair(width, last) > std::pair(other.width, other.last);
  }
};

/// Breadth first, and among the ways with equally many hops the widest: of two layers, the bottleneck of the
/// longer way never grows, so the best of each layer suffices. Of two links between the same devices the
/// wider one is taken, also where a narrower one elsewhere is the bottleneck: so both directions take the
/// same.
std::map<DeviceId, Reached> search(const Machine& machine, DeviceId from, bool gpu_fabric_only) {
  std::map<DeviceId, Reached> reached{{from, {0, 1e300, {}, 0}}};
  std::vector<DeviceId> layer{from};
  for (int distance = 1; !layer.empty(); ++distance) {
    std::vector<DeviceId> next;
    const auto cross = [&](DeviceId a, DeviceId b, int index, bool forward) {
      if (std::ranges::find(layer, a) == layer.end()) return;
      const double carries = machine.links[static_cast<std::size_t>(index)].bandwidth.value;
      const Reached found{distance, std::min(reached[a].width, carries), {index, forward}, carries};
      const auto [entry, first] = reached.try_emplace(b, found);
      if (first) {
        if (passes(b.kind, gpu_fabric_only)) next.push_back(b);
      } else if (entry->second.distance == distance && found.is_wider_than(entry->second)) {
        entry->second = found;
      }
    };
    for (int i = 0; i < static_cast<int>(machine.links.size()); ++i) {
      const Link& link = machine.links[static_cast<std::size_t>(i)];
      if (gpu_fabric_only && !is_gpu_fabric(link.kind)) continue;
      cross(link.from, link.to, i, true);
      cross(link.to, link.from, i, false);
    }
    layer = std::move(next);
  }
  return reached;
}

struct Locality {
  int numa = -1;
  int host_bridge = -1;
  bool package_known = true;
  std::string_view slot{};  // the PCI address without the function
};

Locality locality(const Machine& machine, DeviceId id) {
  const auto index = static_cast<std::size_t>(id.index);
  const auto of = [](const auto& device) {
    return Locality{device.numa, device.host_bridge, device.package_known,
                    std::string_view(device.pci).substr(0, device.pci.find('.'))};
  };
  if (id.kind == DeviceKind::gpu) return of(machine.gpus[index]);
  return id.kind == DeviceKind::nic ? of(machine.nics[index]) : Locality{};
}

PathType classify(const Machine& machine, DeviceId from, const Path& path) {
  const std::vector<DeviceId> devices = devices_of(machine, from, path);
  const auto packages = std::ranges::count(devices, DeviceKind::package, &DeviceId::kind);
  const auto switches = std::ranges::count(devices, DeviceKind::pci_switch, &DeviceId::kind);
  if (packages == 0) return switches <= 1 ? PathType::pix : PathType::pxb;
  const DeviceId to = devices.back();
  const Locality a = locality(machine, from);
  const Locality b = locality(machine, to);
  // Functions of one adapter have one way to the processor, and nothing between them.
  if (!a.slot.empty() && a.slot == b.slot) return PathType::pix;
  if (!a.package_known || !b.package_known) return PathType::unknown;
  if (packages > 1 || (a.numa >= 0 && b.numa >= 0 && a.numa != b.numa)) return PathType::sys;
  const auto c2c = std::ranges::count_if(path.hops, [&](const Hop& hop) {
    return machine.links[static_cast<std::size_t>(hop.link)].kind == LinkKind::c2c;
  });
  if (c2c > 0) return c2c == std::ssize(path.hops) ? PathType::c2c : PathType::p2c;
  if (from.kind == DeviceKind::package || to.kind == DeviceKind::package) return PathType::phb;
  return a.host_bridge >= 0 && a.host_bridge == b.host_bridge ? PathType::phb : PathType::node;
}

}  // namespace

std::string_view to_text(PathType type) {
  switch (type) {
    case PathType::self:
      return "X";
    case PathType::nvl:
      return "NVL";
    case PathType::nvb:
      return "NVB";
    case PathType::c2c:
      return "C2C";
    case PathType::pix:
      return "PIX";
    case PathType::pxb:
      return "PXB";
    case PathType::p2c:
      return "P2C";
    case PathType::phb:
      return "PHB";
    case PathType::node:
      return "NODE";
    case PathType::sys:
      return "SYS";
    case PathType::unknown:
      return "?";
  }
  return "?";
}

std::optional<Path> find_path(const Machine& machine, DeviceId from, DeviceId to) {
  if (from == to) return Path{};
  bool gpu_fabric = true;
  auto reached = search(machine, from, gpu_fabric);
  if (!reached.contains(to)) {
    gpu_fabric = false;
    reached = search(machine, from, gpu_fabric);
    if (!reached.contains(to)) return std::nullopt;
  }
  Path path;
  path.bandwidth = {reached[to].width};
  for (DeviceId at = to; at != from;) {
    const Hop hop = reached[at].hop;
    const Link& link = machine.links[static_cast<std::size_t>(hop.link)];
    path.hops.push_back(hop);
    path.latency = path.latency + link.latency;
    at = hop.forward ? link.from : link.to;
  }
  std::ranges::reverse(path.hops);
  path.type = gpu_fabric ? PathType::nvl : classify(machine, from, path);
  return path;
}

std::set<DeviceId> reachable(const Machine& machine, DeviceId from) {
  // What NVLink alone joins, a way over any links joins too.
  std::set<DeviceId> devices;
  for (const auto& [device, reached] : search(machine, from, false)) devices.insert(device);
  return devices;
}

Path path_between(const Machine& machine, DeviceId from, DeviceId to) {
  auto path = find_path(machine, from, to);
  if (!path) {
    usage_error("{}: there is no path from {} to {}; add the missing link", machine.name,
                machine.device_name(from), machine.device_name(to));
  }
  return *std::move(path);
}

std::vector<int> nearest_packages(const Machine& machine, DeviceId gpu_or_nic) {
  const auto at = static_cast<std::size_t>(gpu_or_nic.index);
  const bool known =
      gpu_or_nic.kind == DeviceKind::gpu ? machine.gpus[at].package_known : machine.nics[at].package_known;
  std::vector<int> nearest;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (int i = 0; known && i < static_cast<int>(machine.packages.size()); ++i) {
    const auto path = find_path(machine, gpu_or_nic, {DeviceKind::package, i});
    if (!path || path->hops.size() > fewest) continue;
    if (path->hops.size() < fewest) nearest.clear();
    fewest = path->hops.size();
    nearest.push_back(i);
  }
  return nearest;
}

std::vector<DeviceId> devices_of(const Machine& machine, DeviceId from, const Path& path) {
  std::vector<DeviceId> devices{from};
  for (const Hop& hop : path.hops) {
    const Link& link = machine.links[static_cast<std::size_t>(hop.link)];
    devices.push_back(hop.forward ? link.to : link.from);
  }
  return devices;
}

}  // namespace polyring
