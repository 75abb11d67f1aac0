// --assume: rates for what the files of a machine leave open.
#pragma once

#include <string>
#include <vector>

#include "topology/assumed_rates.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// One KEY=RATE.
struct AssumedRate {
  std::string text;  // as it was given
  std::string key;
  RateOf what = RateOf::nic_port;
  Bandwidth rate;
};

/// What --help says.
std::string assume_help();

/// Throws a usage Error for a key that is unknown or given twice, and for a rate that makes no sense.
std::vector<AssumedRate> parse_assumed(const std::vector<std::string>& texts);

/// Fills in these rates where those of the hosts are unknown, cites that they are assumed, and says it in
/// Inventory::asked. Throws a usage Error for a rate that nothing needs.
void assume_rates(Inventory& hosts, const std::vector<AssumedRate>& rates);

}  // namespace polyring
