// Rates that somebody assumes of a machine where its sources tell none.
#pragma once

#include <string>

#include "topology/machine.hpp"

namespace polyring {

/// What a rate can be assumed of.
enum class RateOf {
  nic_port,
  pcie_link,
  nvlink,     // one of those that are bonded in a Link
  xgmi_link,  // one of those that are bonded in a Link
  c2c,
  socket_bus,
};

/// What fill_unknown() found.
struct FilledRates {
  int filled = 0;         // ports; links, bonded ones one by one
  int known = 0;          // ports or Links that need no assumption
  std::string uncounted;  // a Link that was left out, since nothing tells how many are bonded in it
};

/// Gives each port or link of this sort whose bandwidth is unknown this one, per direction, and marks it as
/// assumed. A NIC that may be up but shows no ports (usable_nics()) gets one that is up; ports that are down
/// stay as they are.
FilledRates fill_unknown(Machine& machine, RateOf what, Bandwidth rate);

/// Whether it did so here, or in the file that the machine is from.
bool has_assumed_rates(const Machine& machine);

}  // namespace polyring
