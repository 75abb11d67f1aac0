// Rails: the NICs by which a host reaches others, where only some of them are to be used.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// Which NICs `rails` of them are, in the order of the machine: in turns from the packages that they are
/// nearest to, since each package's GPUs should have some. Of one package the fastest come first, then those
/// behind PCIe switches with the fewest so far, then of adapters with the fewest, then the first ones. Those
/// that are near no known package come last.
/// Only NICs count that are known to be up, and that routes use (usable_nics()). Throws a usage Error when
/// `rails` is not in 1..number of these.
std::vector<int> rail_nics(const Machine& machine, int rails);

/// The machine with only these NICs up, as when the other cables are pulled.
Machine with_rails(Machine machine, int rails);

/// "2 of 4 NICs are used: mlx5_0 (processor 0), mlx5_2 (processor 1)".
std::string rails_text(const Machine& machine, int rails);

}  // namespace polyring
