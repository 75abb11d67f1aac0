#include "topology/inventory/probe/hwloc_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "topology/inventory/probe/files.hpp"
#include "topology/inventory/probe/hwloc_nvlink.hpp"
#include "topology/inventory/probe/hwloc_nvml.hpp"
#include "topology/inventory/probe/hwloc_pci.hpp"
#include "topology/inventory/probe/pci_ids.hpp"

namespace polyring::probe {
namespace {

constexpr std::string_view kActive = "4";  // IB_PORT_ACTIVE

bool is_gpu(hwloc_obj_t pci) {
  const auto& attributes = pci->attr->pcidev;
  return probe::is_gpu(attributes.class_id, attributes.vendor_id, attributes.device_id);
}

bool is_adapters_virtual_function(hwloc_obj_t pci) {
  return probe::is_adapters_virtual_function(pci->attr->pcidev.vendor_id, pci->attr->pcidev.device_id);
}

bool is_slice(hwloc_obj_t pci) {
  return probe::is_user_space_slice(pci->attr->pcidev.vendor_id, pci->attr->pcidev.device_id);
}

/// Whether it is a slice of a device that is beside it: a file tells no other virtual functions than these.
bool is_slice_of_another(hwloc_obj_t object) {
  if (object->type != HWLOC_OBJ_PCI_DEVICE || !is_slice(object)) return false;
  hwloc_obj_t other = object->parent->io_first_child;
  for (; other != nullptr; other = other->next_sibling) {
    if (other->type == HWLOC_OBJ_PCI_DEVICE && other->attr->pcidev.vendor_id == kCisco && !is_slice(other))
      return true;
  }
  return false;
}

/// A file can have OS devices without a name, by which alone one is known.
bool is_os_device(hwloc_obj_t object, hwloc_obj_osdev_type_e type) {
  return object->type == HWLOC_OBJ_OS_DEVICE && object->attr->osdev.type == type && object->name != nullptr;
}

/// The object's first OS device of this type; the object itself where it is one.
hwloc_obj_t os_device(hwloc_obj_t object, hwloc_obj_osdev_type_e type) {
  if (object->type == HWLOC_OBJ_OS_DEVICE) return is_os_device(object, type) ? object : nullptr;
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
    if (is_os_device(child, type)) return child;
  }
  return nullptr;
}

bool is_nic(hwloc_obj_t object) {
  if (os_device(object, HWLOC_OBJ_OSDEV_NETWORK) || os_device(object, HWLOC_OBJ_OSDEV_OPENFABRICS))
    return true;
  return object->type == HWLOC_OBJ_PCI_DEVICE && is_network_controller(object->attr->pcidev.class_id);
}

/// The first non-empty value of the info attribute among the object and its OS devices.
std::string info_below(hwloc_obj_t object, const char* name) {
  std::string value = info(object, name);
  for (hwloc_obj_t child = object->io_first_child; child != nullptr && value.empty();
       child = child->next_sibling) {
    value = info(child, name);
  }
  return value;
}

std::string model_of(hwloc_obj_t object) {
  if (object->type != HWLOC_OBJ_PCI_DEVICE) return {};
  for (const char* name : {"GPUModel", "PCIDevice"}) {
    const std::string model = info_below(object, name);
    if (!model.empty()) return model;
  }
  return fmt::format("device {:04x}:{:04x}", object->attr->pcidev.vendor_id, object->attr->pcidev.device_id);
}

Bytes gpu_memory(hwloc_obj_t gpu, const std::optional<Sysfs>& sysfs) {
  if (sysfs) {
    if (const Bytes memory = sysfs->gpu_memory(pci_address(gpu)); memory.value > 0) return memory;
  }
  for (const char* name : {"CUDAGlobalMemorySize", "RSMIVRAMSize", "OpenCLGlobalMemorySize"}) {
    const std::string kibibytes = info_below(gpu, name);
    if (!kibibytes.empty()) return {std::strtoull(kibibytes.c_str(), nullptr, 10) << 10};
  }
  return {};
}

/// By the local identifiers of the ports that are up, which a subnet manager gives to those of InfiniBand,
/// and which are 0 for RoCE.
std::optional<NicKind> link_layer_of_ports(hwloc_obj_t openfabrics) {
  std::optional<NicKind> kind;
  for (int number = 1;; ++number) {
    const std::string state = info(openfabrics, fmt::format("Port{}State", number).c_str());
    if (state.empty()) return kind;
    const std::string lid = info(openfabrics, fmt::format("Port{}LID", number).c_str());
    if (state != kActive || lid.empty()) continue;
    if (whole_number(lid).value_or(0) > 0) return NicKind::infiniband;
    kind = NicKind::ethernet;
  }
}

/// An address of IPoIB has 20 bytes, one of Ethernet 6.
std::optional<NicKind> link_layer_of_interface(hwloc_obj_t network) {
  constexpr std::size_t kOfIpoib = 20;
  const std::string address = info(network, "Address");
  if (address.empty()) return std::nullopt;
  return address.size() == 3 * kOfIpoib - 1 ? NicKind::infiniband : NicKind::ethernet;
}

/// As the ports say; else the PCI class; else what was recorded of ports and interfaces, since a class can
/// mean either.
NicKind nic_kind(hwloc_obj_t object, hwloc_obj_t openfabrics, const std::optional<Sysfs>& sysfs) {
  std::optional<NicKind> kind;
  if (openfabrics != nullptr && sysfs) kind = sysfs->openfabrics_kind(openfabrics->name);
  if (!kind && object->type == HWLOC_OBJ_PCI_DEVICE)
    kind = link_layer_of_class(object->attr->pcidev.class_id);
  if (!kind && openfabrics != nullptr) kind = link_layer_of_ports(openfabrics);
  const hwloc_obj_t network = os_device(object, HWLOC_OBJ_OSDEV_NETWORK);
  if (!kind && network != nullptr) kind = link_layer_of_interface(network);
  return kind.value_or(NicKind::unknown);
}

/// The states of the ports as the XML holds them; their rates are not in it.
std::vector<Port> recorded_ports(hwloc_obj_t openfabrics, NicKind kind) {
  std::vector<Port> ports;
  for (int number = 1;; ++number) {
    const std::string state = info(openfabrics, fmt::format("Port{}State", number).c_str());
    if (state.empty()) return ports;
    // RoCE makes the first GID of the Ethernet address.
    const std::string gid = kind == NicKind::infiniband
                                ? info(openfabrics, fmt::format("Port{}GID0", number).c_str())
                                : std::string();
    ports.push_back({number, state == kActive, {}, guid_text(gid)});
  }
}

bool is_interface(hwloc_obj_t object) { return is_os_device(object, HWLOC_OBJ_OSDEV_NETWORK); }

/// Every network interface of the function is a port of its own.
std::vector<Port> ethernet_ports(hwloc_obj_t object, const Sysfs& sysfs) {
  std::vector<Port> ports;
  const auto add = [&](hwloc_obj_t device) {
    if (!is_interface(device) || sysfs.leaves_by_another(device->name)) return;
    const auto port = sysfs.ethernet_port(device->name, static_cast<int>(ports.size()) + 1);
    if (port) ports.push_back(*port);
  };
  add(object);
  for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) add(child);
  return ports;
}

std::vector<Port> ports_of(hwloc_obj_t object, hwloc_obj_t openfabrics, NicKind kind,
                           const std::optional<Sysfs>& sysfs) {
  if (openfabrics == nullptr) return sysfs ? ethernet_ports(object, *sysfs) : std::vector<Port>{};
  return sysfs ? sysfs->openfabrics_ports(openfabrics->name) : recorded_ports(openfabrics, kind);
}

/// Adds the devices of a topology to its machine.
class Builder {
 public:
  Builder(const HwlocTopology& topology, const std::optional<Sysfs>& sysfs, Machine& machine)
      : sysfs_(sysfs), machine_(machine), tree_(topology, sysfs, machine), nvml_(topology) {
    if (sysfs_) openfabrics_ = sysfs_->openfabrics_devices();
  }

  void add(hwloc_obj_t object) {
    if (sysfs_ && sysfs_->is_virtual_function(pci_of(object))) return;
    if (!sysfs_ && is_slice_of_another(object)) return;
    if (sysfs_ && is_interface(object) && sysfs_->leaves_by_another(object->name)) return;
    if (object->type == HWLOC_OBJ_PCI_DEVICE && is_gpu(object)) {
      add_gpu(object);
    } else if (is_nic(object)) {
      add_nic(object);
    }
  }

  const std::map<hwloc_obj_t, DeviceId>& gpus() const { return gpus_; }

  /// Once all links are there. A live topology asks NVML by no way of hwloc's, and PCIe is in sysfs.
  void correct() {
    if (sysfs_) return;
    nvml_.correct_nvlinks(machine_);
    nvml_.remark(machine_);
  }

 private:
  static std::string pci_of(hwloc_obj_t object) {
    return object->type == HWLOC_OBJ_PCI_DEVICE ? pci_address(object) : std::string();
  }

  void add_gpu(hwloc_obj_t object) {
    const DeviceId id{DeviceKind::gpu, static_cast<int>(machine_.gpus.size())};
    machine_.gpus.push_back({fmt::format("gpu{}", id.index),
                             model_of(object),
                             pci_address(object),
                             tree_.numa_of(object),
                             tree_.host_bridge_of(object),
                             gpu_memory(object, sysfs_),
                             {}});
    gpus_[object] = id;
    tree_.attach(object, id);
    if (!sysfs_) nvml_.correct_pcie(object, machine_.gpus.back(), machine_.links.back());
  }

  void add_nic(hwloc_obj_t object) {
    const hwloc_obj_t openfabrics = own_openfabrics(object);
    const hwloc_obj_t network = os_device(object, HWLOC_OBJ_OSDEV_NETWORK);
    const DeviceId id{DeviceKind::nic, static_cast<int>(machine_.nics.size())};
    const std::string guid = openfabrics == nullptr ? "" : guid_text(info(openfabrics, "SysImageGUID"));
    // Virtual functions of an adapter's ports are all function 0 of a slot of their own.
    if (!guid.empty() && object->type == HWLOC_OBJ_PCI_DEVICE && !is_adapters_virtual_function(object)) {
      const auto [port, is_new] = adapter_ports_.try_emplace({guid, object->attr->pcidev.func}, id);
      if (!is_new) return add_attachment(object, port->second);
    }
    const hwloc_obj_t named = openfabrics != nullptr ? openfabrics : network;
    const NicKind kind = nic_kind(object, openfabrics, sysfs_);
    machine_.nics.push_back({unique_name(named != nullptr ? named->name : "nic@" + pci_of(object)),
                             model_of(object), pci_of(object), tree_.numa_of(object),
                             tree_.host_bridge_of(object), kind, ports_of(object, openfabrics, kind, sysfs_),
                             guid});
    tree_.attach(object, id);
  }

  /// The object's first OpenFabrics device that is no representor's.
  hwloc_obj_t own_openfabrics(hwloc_obj_t object) const {
    const hwloc_obj_t first = os_device(object, HWLOC_OBJ_OSDEV_OPENFABRICS);
    for (hwloc_obj_t other = first; other != nullptr && other != object; other = other->next_sibling) {
      if (is_os_device(other, HWLOC_OBJ_OSDEV_OPENFABRICS) && openfabrics_.contains(other->name))
        return other;
    }
    return first;
  }

  /// The same function number of the same adapter at another bus address is the same port, seen from another
  /// socket.
  void add_attachment(hwloc_obj_t object, DeviceId nic) {
    machine_.nics[static_cast<std::size_t>(nic.index)].numa = -1;
    machine_.nics[static_cast<std::size_t>(nic.index)].host_bridge = -1;
    tree_.attach(object, nic);
  }

  /// A file can hold devices of several machines, and so a name twice.
  std::string unique_name(std::string name) {
    const std::string base = name;
    for (int copy = 2; !names_.insert(name).second; ++copy) name = fmt::format("{}#{}", base, copy);
    return name;
  }

  const std::optional<Sysfs>& sysfs_;
  Machine& machine_;
  PciTree tree_;
  NvmlCorrections nvml_;
  std::map<hwloc_obj_t, DeviceId> gpus_;
  std::map<std::pair<std::string, int>, DeviceId> adapter_ports_;
  std::set<std::string> names_;
  std::map<std::string, std::string> openfabrics_;  // those of sysfs, with their PCI addresses
};

/// The PCI devices by address, which is the order of nvidia-smi, then the OS devices that have none.
std::vector<hwloc_obj_t> devices_of(const HwlocTopology& topology) {
  std::vector<hwloc_obj_t> devices;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_pcidev(topology.get(), object)) != nullptr) devices.push_back(object);
  std::ranges::stable_sort(devices, {}, [](hwloc_obj_t pci) {
    const auto& a = pci->attr->pcidev;
    return std::tuple(a.domain, a.bus, a.dev, a.func);
  });
  object = nullptr;
  while ((object = hwloc_get_next_osdev(topology.get(), object)) != nullptr) {
    if (object->parent->type != HWLOC_OBJ_PCI_DEVICE) devices.push_back(object);
  }
  return devices;
}

/// Vendor and product: PlatformModel is what POWER machines have instead of DMI.
std::string machine_model(hwloc_obj_t root) {
  const std::string product = info(root, "DMIProductName");
  if (product.empty()) return info(root, "PlatformModel");
  const std::string vendor = info(root, "DMISysVendor");
  return vendor.empty() ? product : fmt::format("{} {}", vendor, product);
}

}  // namespace

Machine machine_from(const HwlocTopology& topology, const std::optional<Sysfs>& sysfs) {
  const hwloc_obj_t root = hwloc_get_root_obj(topology.get());
  Machine machine;
  machine.name = info(root, "HostName");
  machine.model = machine_model(root);
  Builder builder(topology, sysfs, machine);
  for (const hwloc_obj_t device : devices_of(topology)) builder.add(device);
  add_gpu_links(topology, builder.gpus(), machine);
  builder.correct();
  return machine;
}

}  // namespace polyring::probe
