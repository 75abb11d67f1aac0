#include "topology/probe/hwloc_pci.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace polyring::probe {
namespace {

bool is_bridge(hwloc_obj_t object, hwloc_obj_bridge_type_e upstream) {
  return object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == upstream;
}

/// The PCI bridges above the object, from the root port down.
std::vector<hwloc_obj_t> bridges_above(hwloc_obj_t object) {
  std::vector<hwloc_obj_t> bridges;
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (is_bridge(above, HWLOC_OBJ_BRIDGE_PCI)) bridges.push_back(above);
  }
  std::ranges::reverse(bridges);
  return bridges;
}

/// A device's closest object that has processors.
hwloc_obj_t locality(hwloc_obj_t object) {
  while (object->parent != nullptr && object->cpuset == nullptr) object = object->parent;
  return object;
}

}  // namespace

std::string pci_address(hwloc_obj_t object) {
  const auto& pci =
      object->type == HWLOC_OBJ_BRIDGE ? object->attr->bridge.upstream.pci : object->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

PciTree::PciTree(const HwlocTopology& topology, const std::optional<Sysfs>& sysfs, Machine& machine)
    : topology_(topology), sysfs_(sysfs), machine_(machine) {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, object)) != nullptr) {
    packages_.push_back(object);
  }
  // Some virtual machines report none: then all of it is one package.
  if (packages_.empty()) packages_.push_back(hwloc_get_root_obj(topology.get()));
  for (const hwloc_obj_t package : packages_) add_package(package);
  const int count = static_cast<int>(packages_.size());
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      machine.links.push_back(
          {{DeviceKind::package, a}, {DeviceKind::package, b}, LinkKind::socket_bus, {}, {}});
    }
  }
}

void PciTree::add_package(hwloc_obj_t object) {
  Package package;
  package.name = fmt::format("package{}", machine_.packages.size());
  package.model = info(object, "CPUModel");
  package.cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology_.get(), object->cpuset, HWLOC_OBJ_CORE);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    // Memory of a GPU can be a NUMA node too, one without processors.
    if (!hwloc_bitmap_intersects(node->cpuset, object->cpuset)) continue;
    package.numa_nodes.push_back(static_cast<int>(node->os_index));
    package.memory = package.memory + Bytes{node->attr->numanode.local_memory};
  }
  machine_.packages.push_back(std::move(package));
}

int PciTree::package_of(hwloc_obj_t object) const {
  const hwloc_obj_t near = locality(object);
  const auto overlaps = [&](hwloc_obj_t package) {
    return hwloc_bitmap_intersects(package->cpuset, near->cpuset);
  };
  if (std::ranges::count_if(packages_, overlaps) != 1) return 0;
  return static_cast<int>(std::ranges::find_if(packages_, overlaps) - packages_.begin());
}

int PciTree::numa_of(hwloc_obj_t object) const {
  const hwloc_obj_t near = locality(object);
  return hwloc_bitmap_weight(near->nodeset) == 1 ? hwloc_bitmap_first(near->nodeset) : -1;
}

int PciTree::host_bridge_of(hwloc_obj_t object) {
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (!is_bridge(above, HWLOC_OBJ_BRIDGE_HOST)) continue;
    return host_bridges_.try_emplace(above, static_cast<int>(host_bridges_.size())).first->second;
  }
  return -1;
}

Bandwidth PciTree::speed(hwloc_obj_t object) const {
  if (sysfs_) {
    const Bandwidth best = sysfs_->pcie_bandwidth(pci_address(object));
    if (best.known()) return best;
  }
  const double gigabytes =
      static_cast<double>(object->type == HWLOC_OBJ_BRIDGE ? object->attr->bridge.upstream.pci.linkspeed
                                                           : object->attr->pcidev.linkspeed);
  // hwloc keeps a float; drop the digits that it does not have.
  return gigabytes_per_second(std::round(gigabytes * 1e4) / 1e4);
}

/// Both ends of a link, and the bridges that only pass it on, bound it. Unknown ends don't.
Bandwidth PciTree::narrowest(const std::vector<hwloc_obj_t>& ends) const {
  Bandwidth least;
  for (const hwloc_obj_t end : ends) {
    const Bandwidth bandwidth = speed(end);
    if (bandwidth.known() && (!least.known() || bandwidth < least)) least = bandwidth;
  }
  return least;
}

DeviceId PciTree::switch_at(hwloc_obj_t upstream_port, const std::vector<hwloc_obj_t>& ends,
                            DeviceId parent) {
  const int index = static_cast<int>(machine_.switches.size());
  const auto [entry, is_new] = switches_.try_emplace(upstream_port, DeviceId{DeviceKind::pci_switch, index});
  if (is_new) {
    machine_.switches.push_back({fmt::format("switch{}", index), pci_address(upstream_port)});
    machine_.links.push_back({entry->second, parent, LinkKind::pcie, narrowest(ends), {}});
  }
  return entry->second;
}

void PciTree::attach(hwloc_obj_t object, DeviceId device) {
  DeviceId parent{DeviceKind::package, package_of(object)};
  // From the top: a root port, then an upstream and a downstream port for each switch. An upstream port
  // without a downstream port below it is a mere bridge to an older bus.
  const std::vector<hwloc_obj_t> bridges = bridges_above(object);
  std::size_t below = 0;
  for (std::size_t upstream = 1; upstream + 1 < bridges.size(); upstream += 2) {
    parent = switch_at(bridges[upstream], {bridges[upstream - 1], bridges[upstream]}, parent);
    below = upstream + 1;
  }
  std::vector<hwloc_obj_t> ends(bridges.begin() + static_cast<std::ptrdiff_t>(below), bridges.end());
  ends.push_back(object);
  if (object->type == HWLOC_OBJ_OS_DEVICE) ends.clear();  // not a PCI device: nothing is known of its link
  machine_.links.push_back({device, parent, LinkKind::pcie, narrowest(ends), {}});
}

}  // namespace polyring::probe
