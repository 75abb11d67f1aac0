// --nics, --oversubscription, --gpus-per-host and --without: the hosts that are known, changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/cli/command_line.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

struct WhatIfOptions {
  std::string nics;              // "4x400Gb/s", "4xndr" or "4"; empty: as they are
  std::string oversubscription;  // "2" or "2:1"; empty: as it is
  std::optional<int> gpus_per_host;
  std::vector<std::string> without;

  void add_to(Subcommand command);
  bool none() const { return nics.empty() && oversubscription.empty() && !gpus_per_host && without.empty(); }
  /// Changes all hosts and their fabric in this order: GPUs, NICs, oversubscription, what is left out. Cites
  /// what was asked for, and says it in Inventory::asked. Throws a usage Error as the functions of
  /// topology/what_if.hpp do.
  void apply(Inventory& hosts) const;
};

}  // namespace polyring
