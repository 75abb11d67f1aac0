#include "topology/shared_links.hpp"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace polyring {
namespace {

/// The device's bus address without the function, what it hangs on, since an adapter of several sockets hangs
/// on each, and the bandwidth, in which functions of one device agree.
using Slot = std::tuple<std::string, DeviceId, double>;

/// Nothing for links that are no NIC's, or of a NIC without an address.
std::optional<Slot> slot_of(const Machine& machine, const Link& link) {
  if (link.kind != LinkKind::pcie || link.from.kind != DeviceKind::nic) return std::nullopt;
  const std::string& pci = machine.nics[static_cast<std::size_t>(link.from.index)].pci;
  if (pci.empty()) return std::nullopt;
  return Slot{pci.substr(0, pci.rfind('.')), link.to, link.bandwidth.value};
}

}  // namespace

std::vector<int> physical_links(const Machine& machine) {
  std::map<Slot, int> first;
  std::vector<int> physical;
  for (const Link& link : machine.links) {
    const int own = static_cast<int>(physical.size());
    const auto slot = slot_of(machine, link);
    physical.push_back(slot ? first.try_emplace(*slot, own).first->second : own);
  }
  return physical;
}

std::vector<int> nics_of(const Machine& machine, const Link& link) {
  if (link.from.kind != DeviceKind::nic) return {};
  const auto slot = slot_of(machine, link);
  if (!slot) return {link.from.index};
  std::vector<int> nics;
  for (const Link& other : machine.links) {
    if (slot_of(machine, other) == slot) nics.push_back(other.from.index);
  }
  return nics;
}

std::vector<std::string> shared_with(const Machine& machine, const Link& link) {
  std::vector<std::string> names;
  for (const int nic : nics_of(machine, link)) {
    if (nic != link.from.index) names.push_back(machine.device_name({DeviceKind::nic, nic}));
  }
  return names;
}

}  // namespace polyring
