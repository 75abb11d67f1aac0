#include "topology/inventory/probe/hwloc_pci.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "topology/inventory/probe/files.hpp"

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

/// Memory of a GPU can be a NUMA node too: one without processors, or, where hwloc keeps those of Grace
/// Hopper, one of this subtype that claims the processors near the GPU.
bool is_processors_memory(hwloc_obj_t node) {
  const std::string_view subtype = node->subtype == nullptr ? "" : node->subtype;
  return subtype != "GPUMemory" && !hwloc_bitmap_iszero(node->cpuset);
}

/// Whether hwloc's speed of the moment, in GB/s, is one of 2.5 GT/s, or of 5 GT/s on eight lanes at most, as
/// of no GPU that works. The coding of these, 8b/10b, gives whole quarters; later ones have 128b/130b.
bool is_turned_down(double gigabytes) {
  constexpr double kMost = 4;
  constexpr double kLane = 0.25;
  return gigabytes <= kMost && std::fmod(gigabytes, kLane) == 0;
}

/// NCCL's word for a machine that `uname -m` has another one for; empty where NCCL has none.
std::string architecture_for_nccl(const std::string& machine) {
  if (machine == "ppc64le") return "ppc64";
  if (machine == "aarch64") return "arm64";
  return machine == "x86_64" || machine == "ppc64" ? machine : "";
}

CpuIdentity cpu_identity(const HwlocTopology& topology, hwloc_obj_t package) {
  const auto number = [&](const char* name) {
    const long value = whole_number(info(package, name)).value_or(-1);
    return value < 0 || value > 0xffff ? -1 : static_cast<int>(value);
  };
  const std::string machine = info(hwloc_get_root_obj(topology.get()), "Architecture");
  return {architecture_for_nccl(machine), info(package, "CPUVendor"), number("CPUFamilyNumber"),
          number("CPUModelNumber")};
}

}  // namespace

std::string pci_address(hwloc_obj_t object) {
  const auto& pci =
      object->type == HWLOC_OBJ_BRIDGE ? object->attr->bridge.upstream.pci : object->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

Bandwidth recorded_speed(hwloc_obj_t object) {
  const double gigabytes =
      static_cast<double>(object->type == HWLOC_OBJ_BRIDGE ? object->attr->bridge.upstream.pci.linkspeed
                                                           : object->attr->pcidev.linkspeed);
  // hwloc keeps a float; drop the digits that it does not have.
  return gigabytes_per_second(std::round(gigabytes * 1e4) / 1e4);
}

PciTree::PciTree(const HwlocTopology& topology, const std::optional<Sysfs>& sysfs, Machine& machine)
    : topology_(topology), sysfs_(sysfs), machine_(machine), links_(machine) {
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, object)) != nullptr) {
    packages_.push_back(object);
  }
  // Some virtual machines report none: then all of it is one package.
  if (packages_.empty()) packages_.push_back(hwloc_get_root_obj(topology.get()));
  for (const hwloc_obj_t package : packages_) add_package(package);
  add_socket_buses(machine);
}

void PciTree::add_package(hwloc_obj_t object) {
  Package package;
  package.name = fmt::format("package{}", machine_.packages.size());
  package.model = info(object, "CPUModel");
  package.cpu = cpu_identity(topology_, object);
  package.cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology_.get(), object->cpuset, HWLOC_OBJ_CORE);
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (!is_processors_memory(node) || !hwloc_bitmap_intersects(node->cpuset, object->cpuset)) continue;
    package.numa_nodes.push_back(static_cast<int>(node->os_index));
    // How the memory of a node that spans packages is divided nothing tells.
    if (hwloc_bitmap_isincluded(node->cpuset, object->cpuset) != 0)
      package.memory = package.memory + Bytes{node->attr->numanode.local_memory};
  }
  machine_.packages.push_back(std::move(package));
}

std::optional<int> PciTree::package_of(hwloc_obj_t object) const {
  const hwloc_obj_t near = locality(object);
  const auto overlaps = [&](hwloc_obj_t package) {
    return hwloc_bitmap_intersects(package->cpuset, near->cpuset);
  };
  if (std::ranges::count_if(packages_, overlaps) != 1) return std::nullopt;
  return static_cast<int>(std::ranges::find_if(packages_, overlaps) - packages_.begin());
}

int PciTree::numa_of(hwloc_obj_t object) const {
  const hwloc_obj_t near = locality(object);
  int only = -1;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (!is_processors_memory(node) || hwloc_bitmap_isset(near->nodeset, node->os_index) == 0) continue;
    if (only >= 0) return -1;
    only = static_cast<int>(node->os_index);
  }
  return only;
}

int PciTree::host_bridge_of(hwloc_obj_t object) {
  for (hwloc_obj_t above = object->parent; above != nullptr; above = above->parent) {
    if (!is_bridge(above, HWLOC_OBJ_BRIDGE_HOST)) continue;
    return host_bridges_.try_emplace(above, static_cast<int>(host_bridges_.size())).first->second;
  }
  return -1;
}

Bandwidth PciTree::speed(hwloc_obj_t object, bool may_idle) const {
  if (sysfs_) {
    const Bandwidth best = sysfs_->pcie_bandwidth(pci_address(object));
    if (best.known()) return best;
  }
  const Bandwidth recorded = recorded_speed(object);
  return may_idle && is_turned_down(recorded.gigabytes_per_second()) ? Bandwidth{} : recorded;
}

/// hwloc leaves a bridge's subsystem out where it sees PCI by libpciaccess (hwloc/topology-pci.c).
PciIdentity PciTree::identity(hwloc_obj_t object) const {
  if (sysfs_) return sysfs_->pci_identity(pci_address(object));
  const auto& pci =
      object->type == HWLOC_OBJ_BRIDGE ? object->attr->bridge.upstream.pci : object->attr->pcidev;
  return {pci.vendor_id, pci.device_id, pci.subvendor_id, pci.subdevice_id};
}

PciEnd PciTree::end_at(hwloc_obj_t object, bool may_idle) const {
  // hwloc's own number tells apart the devices of several machines that one file can hold.
  return {fmt::format("{}", object->gp_index), pci_address(object), speed(object, may_idle),
          identity(object)};
}

void PciTree::attach(hwloc_obj_t object, DeviceId device) {
  const bool may_idle = device.kind == DeviceKind::gpu;
  std::vector<PciEnd> bridges;
  for (const hwloc_obj_t bridge : bridges_above(object)) bridges.push_back(end_at(bridge, may_idle));
  std::vector<PciEnd> ends;
  if (object->type != HWLOC_OBJ_OS_DEVICE) ends.push_back(end_at(object, may_idle));
  links_.attach(device, package_of(object), bridges, ends);
}

}  // namespace polyring::probe
