// The ranks of a host in the groups that its hardware makes: what hangs under one package or PCIe switch,
// what NVLinks join.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// Some ranks of a host, and what people call them.
struct RankGroup {
  std::string name;  // "2 GPUs of package0"; of one alone its own, "gpu0"
  std::vector<int> ranks;
};

/// Each holds every rank of the host once; those that belong nowhere come last, together: "the other 2 GPUs".
std::vector<RankGroup> single_ranks(const Machine& machine);
/// By the package that is nearest; ranks that are as near to several belong nowhere.
std::vector<RankGroup> ranks_by_package(const Machine& machine);
/// By the PCIe switch below the package, or where switches hang under switches, by the one above the rank.
std::vector<RankGroup> ranks_by_upper_switch(const Machine& machine);
std::vector<RankGroup> ranks_by_lower_switch(const Machine& machine);
/// GPUs that NVLinks (or xGMI) join, directly or through others.
std::vector<RankGroup> ranks_by_island(const Machine& machine);

/// Where NVLinks (or xGMI) join all GPUs: the host with these links alone, which is what a ring or a tree
/// runs over; PCIe beside them takes no part. Otherwise as it is.
Machine with_gpu_fabric_alone(Machine machine);

/// Whether NVLinks (or xGMI) join each two GPUs, directly or through NVSwitches, so that what one GPU sends
/// to another takes them. In a DGX-1 they join all GPUs, and not each two.
bool gpu_fabric_joins_each_pair(const Machine& machine);

/// "4 GPUs", "1 GPU", "2 processes"; "the host" where a rank has neither.
std::string ranks_text(const Machine& machine, int ranks);

}  // namespace polyring
