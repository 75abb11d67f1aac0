#include "topology/inventory/probe/pci_links.hpp"

#include <fmt/format.h>

namespace polyring::probe {
namespace {

/// All ends of a link, and the bridges that only pass it on, bound it. Unknown ends don't.
Bandwidth narrowest(const std::vector<PciEnd>& ends) {
  Bandwidth least;
  for (const PciEnd& end : ends) {
    if (end.bandwidth.known() && (!least.known() || end.bandwidth < least)) least = end.bandwidth;
  }
  return least;
}

}  // namespace

DeviceId PciLinks::switch_at(const PciEnd& upstream, const PciEnd& above, DeviceId parent) {
  const int index = static_cast<int>(machine_.switches.size());
  const auto [entry, is_new] = switches_.try_emplace(upstream.key, DeviceId{DeviceKind::pci_switch, index});
  if (is_new) {
    machine_.switches.push_back({fmt::format("switch{}", index), upstream.address});
    machine_.links.push_back({entry->second, parent, LinkKind::pcie, narrowest({above, upstream}), {}});
  }
  return entry->second;
}

void PciLinks::attach(DeviceId device, std::optional<int> package, const std::vector<PciEnd>& bridges,
                      const std::vector<PciEnd>& ends) {
  if (!package) package_is_unknown(machine_, device);
  DeviceId parent{DeviceKind::package, package.value_or(0)};
  // From the top: a root port, then an upstream and a downstream port for each switch. An upstream port
  // without a downstream port below it is a mere bridge to an older bus.
  std::size_t below = 0;
  const PciEnd* whole = nullptr;  // of the switch above, unless its lower level has been seen
  for (std::size_t upstream = 1; upstream + 1 < bridges.size(); upstream += 2) {
    const PciEnd& end = bridges[upstream];
    if (whole != nullptr && are_one_switch(whole->identity, end.identity)) {
      whole = nullptr;
    } else {
      parent = switch_at(end, bridges[upstream - 1], parent);
      whole = &end;
    }
    below = upstream + 1;
  }
  std::vector<PciEnd> link = ends;
  if (!ends.empty())
    link.insert(link.begin(), bridges.begin() + static_cast<std::ptrdiff_t>(below), bridges.end());
  machine_.links.push_back({device, parent, LinkKind::pcie, narrowest(link), {}});
}

void package_is_unknown(Machine& machine, DeviceId device) {
  const auto index = static_cast<std::size_t>(device.index);
  const bool known = machine.packages.size() < 2;
  if (device.kind == DeviceKind::gpu) machine.gpus[index].package_known = known;
  if (device.kind == DeviceKind::nic) machine.nics[index].package_known = known;
}

void add_socket_buses(Machine& machine) {
  const int count = static_cast<int>(machine.packages.size());
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      machine.links.push_back(
          {{DeviceKind::package, a}, {DeviceKind::package, b}, LinkKind::socket_bus, {}, {}});
    }
  }
}

}  // namespace polyring::probe
