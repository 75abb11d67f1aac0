// What the options of `polyring scale` cannot ask for together.
#pragma once

#include <string>
#include <vector>

#include "bench/cli/options.hpp"

namespace polyring {

/// Throws a usage Error where no algorithm is left for what `plan` asks for: NCCL and MPI choose their own
/// plans, and where the network reduces, hosts are the dimension. `costs`: costs of messages or of reductions
/// are given.
void check_algorithms(const std::vector<std::string>& algorithms, const PlanOptions& plan, bool costs);

}  // namespace polyring
