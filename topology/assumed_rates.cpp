#include "topology/assumed_rates.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "topology/link_names.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

LinkKind kind_of(RateOf what) {
  switch (what) {
    case RateOf::nvlink:
      return LinkKind::nvlink;
    case RateOf::xgmi_link:
      return LinkKind::xgmi;
    case RateOf::c2c:
      return LinkKind::c2c;
    case RateOf::socket_bus:
      return LinkKind::socket_bus;
    case RateOf::nic_port:
    case RateOf::pcie_link:
      break;
  }
  return LinkKind::pcie;
}

FilledRates fill_ports(Machine& machine, Bandwidth rate) {
  for (const int nic : usable_nics(machine)) {
    std::vector<Port>& ports = machine.nics[index(nic)].ports;
    if (ports.empty()) ports.push_back({1, true, {}});
  }
  FilledRates result;
  for (Nic& nic : machine.nics) {
    for (Port& port : nic.ports) {
      if (!port.up) continue;
      if (port.bandwidth.known()) {
        ++result.known;
        continue;
      }
      port.bandwidth = rate;
      port.assumed = true;
      ++result.filled;
    }
  }
  return result;
}

}  // namespace

FilledRates fill_unknown(Machine& machine, RateOf what, Bandwidth rate) {
  if (what == RateOf::nic_port) return fill_ports(machine, rate);
  const bool bonded = what == RateOf::nvlink || what == RateOf::xgmi_link;
  FilledRates result;
  for (Link& link : machine.links) {
    if (link.kind != kind_of(what)) continue;
    const int count = bonded ? link.count : 1;
    if (link.bandwidth.known()) {
      ++result.known;
    } else if (count == 0) {
      result.uncounted = link_name(machine, link);
    } else {
      link.bandwidth = count * rate;
      link.assumed = true;
      result.filled += count;
    }
  }
  return result;
}

bool has_assumed_rates(const Machine& machine) {
  return std::ranges::any_of(machine.links, &Link::assumed) ||
         std::ranges::any_of(machine.nics,
                             [](const Nic& nic) { return std::ranges::any_of(nic.ports, &Port::assumed); });
}

}  // namespace polyring
