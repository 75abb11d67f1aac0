#include "topology/inventory/probe/remarks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>

#include "topology/inventory/probe/files.hpp"
#include "topology/inventory/probe/odd_ones.hpp"
#include "topology/inventory/probe/pci_ids.hpp"

namespace polyring::probe {
namespace {

/// What two ends of a link can do together; unknown ends don't count.
template <typename Number>
Number both(Number a, Number b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

using Remarks = std::vector<std::string>;

template <typename... Args>
void add(Remarks& remarks, fmt::format_string<Args...> sentence, Args&&... args) {
  remarks.push_back(fmt::format(sentence, std::forward<Args>(args)...));
}

/// The last remark is a fault of this device's link.
void add_fault(const Remarks& remarks, std::vector<LinkFault>& faults, const std::string& device) {
  faults.push_back({device, remarks.back()});
}

class PcieRemarks {
 public:
  PcieRemarks(const Sysfs& sysfs, Remarks& remarks, std::vector<LinkFault>& faults)
      : sysfs_(sysfs), remarks_(remarks), faults_(faults) {}

  /// Looks at the link of one device to the port above it.
  void look(const std::string& name, const std::string& pci, bool speed_counts, bool slot_counts) {
    const PcieLink link = sysfs_.pcie_link(pci);
    const std::vector<std::string> bridges = sysfs_.bridges_above(pci);
    const PcieLink above = bridges.empty() ? PcieLink{} : sysfs_.pcie_link(bridges.back());
    const int lanes = both(link.max_lanes, above.max_lanes);
    if (link.lanes > 0 && link.lanes < lanes) {
      add(remarks_,
          "{} ({}) runs on {} of {} PCIe lanes, which both ends have: see whether it sits well, or its riser "
          "is damaged",
          name, pci, link.lanes, lanes);
      add_fault(remarks_, faults_, name);
    } else if (slot_counts && link.lanes > 0 && link.lanes < link.max_lanes) {
      add(remarks_, "{} ({}) has {} PCIe lanes, but its slot only {}: a wider slot would serve it better",
          name, pci, link.max_lanes, link.lanes);
    }
    const double speed = both(link.max_speed, above.max_speed);
    if (speed_counts && link.speed > 0 && link.speed < speed) {
      add(remarks_,
          "{} ({}) runs its PCIe link at {} of {} GT/s, which both ends can do: see the BIOS' setting of "
          "this slot, and its riser",
          name, pci, link.speed, speed);
      add_fault(remarks_, faults_, name);
    }
  }

 private:
  const Sysfs& sysfs_;
  Remarks& remarks_;
  std::vector<LinkFault>& faults_;
};

/// Whether most NICs of this one's model and kind are up.
bool is_usually_up(const Machine& machine, const Nic& nic) {
  std::size_t of_kind = 0;
  std::size_t up = 0;
  for (const Nic& other : machine.nics) {
    if (other.model != nic.model || other.kind != nic.kind) continue;
    ++of_kind;
    up += other.up() ? 1 : 0;
  }
  return 2 * up > of_kind;
}

class PortRemarks {
 public:
  PortRemarks(const Machine& machine, const Sysfs& sysfs, Remarks& remarks, std::vector<LinkFault>& faults)
      : machine_(machine),
        sysfs_(sysfs),
        remarks_(remarks),
        faults_(faults),
        interfaces_(sysfs.interfaces()) {}

  void look(const Nic& nic) {
    look_at_openfabrics(nic);
    for (const Interface& interface : interfaces_) {
      const bool of_nic = nic.pci.empty() ? interface.name == nic.name : interface.pci == nic.pci;
      if (of_nic && interface.link_layer == NicKind::ethernet) look_at_interface(interface, nic);
    }
  }

  /// Interfaces of one speed in one host mostly serve one network, where the MTU should be the same.
  void compare_mtus() {
    for (const auto& [speed, by_mtu] : mtus_) {
      if (by_mtu.size() < 2) continue;
      std::vector<std::string> groups;
      for (const auto& [mtu, names] : by_mtu)
        groups.push_back(fmt::format("{} of {}", mtu, fmt::join(names, ", ")));
      add(remarks_, "interfaces of {} differ in MTU: {}", to_text(speed), fmt::join(groups, "; "));
    }
  }

  /// InfiniBand adapters that show no ports.
  void look_for_unrecorded(std::span<const Nic> nics) {
    std::vector<std::string> names;
    for (const Nic& nic : nics) {
      if (nic.kind == NicKind::infiniband && nic.ports.empty()) names.push_back(nic.name);
    }
    if (names.empty()) return;
    add(remarks_,
        "of {}, {} of InfiniBand, no ports are known, nor what {}: the copy has no class/infiniband, "
        "which scripts/record_sysfs copies",
        fmt::join(names, ", "), names.size() == 1 ? "an adapter" : "adapters",
        names.size() == 1 ? "it carries" : "they carry");
  }

 private:
  void look_at_openfabrics(const Nic& nic) {
    for (const PortState& port : sysfs_.openfabrics_states(nic.name)) {
      // What some trees lack is no fault of the port.
      if (port.state.empty() || port.state == "ACTIVE") continue;
      if (port.state == "INIT" && port.physical == "LinkUp") {
        add(remarks_,
            "{} port {} has a link, but no subnet manager has set it up (INIT): sminfo says whether one runs",
            nic.name, port.number);
        add_fault_of(nic);
      } else if (port.physical == "Disabled") {
        add(remarks_, "{} port {} is {} and disabled", nic.name, port.number, port.state);
      } else {
        add(remarks_, "{} port {} is {}{}: see its cable and the switch's port", nic.name, port.number,
            port.state, port.physical.empty() ? "" : fmt::format(" ({})", port.physical));
        add_fault_of(nic);
      }
    }
  }

  void look_at_interface(const Interface& interface, const Nic& nic) {
    const bool is_openfabrics = interface.name != nic.name && !sysfs_.openfabrics_states(nic.name).empty();
    if (interface.standby) {
      add(remarks_, "{} stands by in a bond, and does not count while another member works", interface.name);
    } else if (interface.no_carrier && !is_openfabrics) {
      add(remarks_, "{} is set up but has no carrier: see its cable and the switch's port", interface.name);
      add_fault_of(nic);
    }
    if (interface.port.up && interface.mtu > 0 && interface.port.bandwidth.known())
      mtus_[interface.port.bandwidth][interface.mtu].push_back(interface.name);
  }

  /// Nobody has plugged a cable into some NICs.
  void add_fault_of(const Nic& nic) {
    if (is_usually_up(machine_, nic)) faults_.push_back({nic.name, remarks_.back(), true});
  }

  const Machine& machine_;
  const Sysfs& sysfs_;
  Remarks& remarks_;
  std::vector<LinkFault>& faults_;
  std::vector<Interface> interfaces_;
  std::map<Bandwidth, std::map<int, std::vector<std::string>>> mtus_;  // names, by speed and MTU
};

}  // namespace

std::vector<std::string> pcie_remarks(const Machine& machine, const Sysfs& sysfs,
                                      const std::set<std::string>& busy, std::vector<LinkFault>& faults) {
  Remarks remarks;
  PcieRemarks found(sysfs, remarks, faults);
  for (const Gpu& gpu : machine.gpus) {
    if (!gpu.pci.empty()) found.look(gpu.name, gpu.pci, busy.contains(gpu.pci), true);
  }
  // Links between switches idle with the GPUs below them.
  for (const PciSwitch& pci_switch : machine.switches)
    found.look(pci_switch.name, pci_switch.pci, false, false);
  for (const Nic& nic : machine.nics) {
    if (!nic.pci.empty()) found.look(nic.name, nic.pci, true, false);
  }
  std::ranges::move(adapter_remarks(machine), std::back_inserter(remarks));
  // Of what runs on fewer lanes than it could, that is said already.
  for (OddOne& odd : odd_ones(machine)) {
    const auto is_of_it = [&](const std::string& remark) { return remark.starts_with(odd.device + " ("); };
    if (std::ranges::any_of(remarks, is_of_it)) continue;
    remarks.push_back(std::move(odd.remark));
    if (odd.is_link) add_fault(remarks, faults, odd.device);
  }
  return remarks;
}

std::vector<std::string> file_remarks(const Machine& machine) {
  Remarks remarks = adapter_remarks(machine);
  for (OddOne& odd : odd_ones(machine)) remarks.push_back(std::move(odd.remark));
  return remarks;
}

std::vector<std::string> adapter_remarks(const Machine& machine) {
  struct Adapter {
    std::vector<std::string> names;
    Bandwidth ports;
    Bandwidth way;
  };
  std::map<std::string, Adapter> adapters;  // by slot: the PCI address without the function
  for (std::size_t i = 0; i < machine.nics.size(); ++i) {
    const Nic& nic = machine.nics[i];
    if (!nic.up()) continue;
    Adapter& adapter = adapters[nic.pci.empty() ? nic.name : nic.pci.substr(0, nic.pci.find('.'))];
    Bandwidth way;
    for (const Link& link : machine.links) {
      if (link.from == DeviceId{DeviceKind::nic, static_cast<int>(i)}) way = way + link.bandwidth;
    }
    adapter.names.push_back(nic.name);
    adapter.ports = adapter.ports + nic.bandwidth();
    adapter.way = std::max(adapter.way, way);
  }
  // Protocol overhead takes a few percent of either, so what is nearly equal is a match.
  constexpr double kNearly = 0.95;
  Remarks remarks;
  for (const auto& [slot, adapter] : adapters) {
    if (!adapter.way.known() || adapter.way >= kNearly * adapter.ports) continue;
    add(remarks, "{} has ports of {} behind a PCIe link of {}{}", fmt::join(adapter.names, " + "),
        to_text(adapter.ports), to_text(adapter.way),
        adapter.names.size() > 1 ? ", which they share; paths show it for each" : "");
  }
  return remarks;
}

std::vector<std::string> rack_remarks(const Machine& machine, bool are_several) {
  const auto is_in_rack = [&](const Link& link) {
    if (link.from.kind != DeviceKind::gpu || link.to.kind != DeviceKind::nvswitch) return false;
    const std::string& model = machine.gpus[static_cast<std::size_t>(link.from.index)].model;
    // Superchips have an NVSwitch in racks only.
    const bool is_superchip =
        model.find("GB200") != std::string::npos || model.find("GB300") != std::string::npos ||
        std::ranges::any_of(machine.links, [&](const Link& other) {
          return other.kind == LinkKind::c2c && (other.from == link.from || other.to == link.from);
        });
    return are_several || is_superchip;
  };
  Remarks remarks;
  if (std::ranges::any_of(machine.links, is_in_rack))
    add(remarks,
        "the NVSwitches of its rack may join its GPUs with those of other hosts, as in a GB200 NVL72: what "
        "is "
        "said of several hosts is over NICs alone, until hosts_per_nvlink_domain in the fabric of the JSON "
        "of "
        "polyring probe says how many they join");
  return remarks;
}

std::vector<std::string> package_remarks(const Machine& machine) {
  std::vector<std::string> names;
  const auto look = [&](const auto& devices) {
    for (const auto& device : devices) {
      if (!device.package_known) names.push_back(device.name);
    }
  };
  look(machine.gpus);
  look(machine.nics);
  Remarks remarks;
  if (!names.empty())
    add(remarks,
        "nothing tells which package {} {} near: {} shown and routed under {}, and paths over packages are "
        "of type ?; a BIOS or hypervisor that gives PCI devices their NUMA nodes would tell",
        fmt::join(names, ", "), names.size() == 1 ? "is" : "are", names.size() == 1 ? "it is" : "they are",
        machine.packages.front().name);
  return remarks;
}

std::vector<std::string> driver_remarks(const Machine& machine, const Sysfs& sysfs,
                                        const std::set<std::string>& shown) {
  std::vector<std::string> hidden;
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.pci.empty() || shown.contains(gpu.pci)) continue;
    const auto vendor = whole_number(sysfs.line(sysfs.pci_folder(gpu.pci) / "vendor"));
    if (vendor == static_cast<long>(kNvidia)) hidden.push_back(fmt::format("{} ({})", gpu.name, gpu.pci));
  }
  Remarks remarks;
  if (!hidden.empty())
    add(remarks,
        "{} {} there, but NVIDIA's driver does not show {}: not given to this container or job, or fallen "
        "off the bus (see dmesg); paths and what is expected are of all {} GPUs",
        fmt::join(hidden, ", "), hidden.size() == 1 ? "is" : "are", hidden.size() == 1 ? "it" : "them",
        machine.gpus.size());
  return remarks;
}

std::vector<std::string> port_remarks(const Machine& machine, const Sysfs& sysfs,
                                      std::vector<LinkFault>& faults) {
  Remarks remarks;
  PortRemarks found(machine, sysfs, remarks, faults);
  for (const Nic& nic : machine.nics) found.look(nic);
  found.compare_mtus();
  found.look_for_unrecorded(machine.nics);
  return remarks;
}

}  // namespace polyring::probe
