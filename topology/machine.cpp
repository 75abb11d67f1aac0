#include "topology/machine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

int count_of(const Machine& machine, DeviceKind kind) {
  switch (kind) {
    case DeviceKind::package:
      return static_cast<int>(machine.packages.size());
    case DeviceKind::pci_switch:
      return static_cast<int>(machine.switches.size());
    case DeviceKind::nvswitch:
      return machine.nvswitches;
    case DeviceKind::gpu:
      return static_cast<int>(machine.gpus.size());
    case DeviceKind::nic:
      return static_cast<int>(machine.nics.size());
  }
  return 0;
}

void validate_bandwidth(const Machine& machine, std::string_view device, Bandwidth bandwidth) {
  if (!std::isfinite(bandwidth.value) || bandwidth.value < 0) {
    usage_error("machine '{}': the bandwidth of {} is {} B/s; give a finite number of 0 (unknown) or above",
                machine.name, device, bandwidth.value);
  }
}

void validate_end(const Machine& machine, std::size_t link, DeviceId end) {
  const int count = count_of(machine, end.kind);
  if (end.index < 0 || end.index >= count) {
    usage_error(
        "machine '{}': link {} ends at {} {}, but the machine has {} of that kind; remove the link or add "
        "the device",
        machine.name, link, to_text(end.kind), end.index, count);
  }
}

void validate_link(const Machine& machine, std::size_t index) {
  const Link& link = machine.links[index];
  validate_end(machine, index, link.from);
  validate_end(machine, index, link.to);
  if (link.from == link.to) {
    usage_error("machine '{}': link {} joins {} to itself; remove it", machine.name, index,
                machine.device_name(link.from));
  }
  const std::string name = fmt::format("the {} link from {} to {}", to_text(link.kind),
                                       machine.device_name(link.from), machine.device_name(link.to));
  validate_bandwidth(machine, name, link.bandwidth);
  if (!std::isfinite(link.latency.value) || link.latency.value < 0) {
    usage_error("machine '{}': the latency of {} is {} s; give a finite number of 0 or above", machine.name,
                name, link.latency.value);
  }
}

void validate_names(const Machine& machine) {
  std::set<std::string> names;
  for (const DeviceKind kind : {DeviceKind::package, DeviceKind::pci_switch, DeviceKind::nvswitch,
                                DeviceKind::gpu, DeviceKind::nic}) {
    for (int i = 0; i < count_of(machine, kind); ++i) {
      const std::string name = machine.device_name({kind, i});
      if (!names.insert(name).second) {
        usage_error("machine '{}': two devices are named '{}'; rename one", machine.name, name);
      }
    }
  }
}

/// Every rank's device must reach every other rank's, and every NIC.
void validate_paths(const Machine& machine) {
  std::vector<DeviceId> targets;
  for (int i = 0; i < machine.ranks(); ++i) targets.push_back(machine.rank_device(i));
  for (int i = 0; i < count_of(machine, DeviceKind::nic); ++i) targets.push_back({DeviceKind::nic, i});
  for (int i = 0; i < machine.ranks(); ++i) {
    const std::set<DeviceId> reached = reachable(machine, machine.rank_device(i));
    for (const DeviceId target : targets) {
      if (!reached.contains(target)) {
        usage_error("machine '{}': there is no path from {} to {}; add the links between them", machine.name,
                    machine.device_name(machine.rank_device(i)), machine.device_name(target));
      }
    }
  }
}

}  // namespace

bool Nic::up() const { return std::ranges::any_of(ports, &Port::up); }

Bandwidth Nic::bandwidth() const {
  Bandwidth sum;
  for (const Port& port : ports) {
    if (!port.up) continue;
    if (!port.bandwidth.known()) return {};
    sum = sum + port.bandwidth;
  }
  return sum;
}

std::string Machine::device_name(DeviceId id) const {
  assert(id.index >= 0 && id.index < count_of(*this, id.kind));
  const auto index = static_cast<std::size_t>(id.index);
  switch (id.kind) {
    case DeviceKind::package:
      return packages[index].name;
    case DeviceKind::pci_switch:
      return switches[index].name;
    case DeviceKind::nvswitch:
      return fmt::format("nvswitch{}", index);
    case DeviceKind::gpu:
      return gpus[index].name;
    case DeviceKind::nic:
      return nics[index].name;
  }
  return {};
}

int Machine::cores() const {
  int sum = 0;
  for (const Package& package : packages) sum += package.cores;
  return sum;
}

DeviceId Machine::rank_device(int index_on_host) const {
  assert(index_on_host >= 0 && index_on_host < ranks());
  return gpus.empty() ? DeviceId{DeviceKind::package, 0} : DeviceId{DeviceKind::gpu, index_on_host};
}

void Machine::make_printable() {
  const auto clean = [](auto&... texts) { ((texts = printable_line(texts)), ...); };
  clean(name, model, gpu_driver);
  for (Package& package : packages)
    clean(package.name, package.model, package.cpu.architecture, package.cpu.vendor);
  for (PciSwitch& pci_switch : switches) clean(pci_switch.name, pci_switch.pci);
  for (Gpu& gpu : gpus) clean(gpu.name, gpu.model, gpu.pci);
  for (Nic& nic : nics) {
    clean(nic.name, nic.model, nic.pci, nic.system_guid);
    for (Port& port : nic.ports) clean(port.guid);
  }
  for (Citation& citation : citations) clean(citation.fact, citation.source);
  for (ProbeSource& source : sources) clean(source.name, source.detail);
  for (std::string& remark : remarks) clean(remark);
  for (LinkFault& fault : link_faults) clean(fault.device, fault.remark);
}

void Machine::validate() const {
  if (packages.empty()) usage_error("machine '{}' has no package (CPU socket); add one", name);
  if (nvswitches < 0) usage_error("machine '{}' has {} NVSwitches; give 0 or more", name, nvswitches);
  validate_names(*this);
  for (const Package& package : packages) validate_bandwidth(*this, package.name, package.memory_bandwidth);
  for (const Gpu& gpu : gpus) validate_bandwidth(*this, gpu.name, gpu.memory_bandwidth);
  for (const Nic& nic : nics) {
    for (const Port& port : nic.ports) {
      validate_bandwidth(*this, fmt::format("{} port {}", nic.name, port.number), port.bandwidth);
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) validate_link(*this, i);
  validate_paths(*this);
}

std::string_view to_text(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::package:
      return "package";
    case DeviceKind::pci_switch:
      return "switch";
    case DeviceKind::nvswitch:
      return "nvswitch";
    case DeviceKind::gpu:
      return "gpu";
    case DeviceKind::nic:
      return "nic";
  }
  return "?";
}

std::string_view to_text(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "nvlink";
    case LinkKind::xgmi:
      return "xgmi";
    case LinkKind::c2c:
      return "c2c";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::socket_bus:
      return "socket-bus";
    case LinkKind::memory:
      return "memory";
  }
  return "?";
}

std::string_view to_text(NicKind kind) {
  switch (kind) {
    case NicKind::infiniband:
      return "infiniband";
    case NicKind::ethernet:
      return "ethernet";
    case NicKind::unknown:
      return "unknown";
  }
  return "?";
}

}  // namespace polyring
