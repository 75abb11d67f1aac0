// ControlBlocks: how the ranks of a host come to see each other's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/shared/control_block.hpp"
#include "collectives/runtime/shared/segment.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// The control blocks of the host's ranks, this rank's own among them.
struct ControlBlocks {
  Segment own;
  std::vector<Mapping> mappings;
  std::vector<ControlBlock*> all;
};

/// Collective. `members` are the ranks of this host, ascending. Null on all ranks when a control block cannot
/// be made or reached on one of them, with the reason in `why`.
std::unique_ptr<ControlBlocks> exchange_control_blocks(const Bootstrap& bootstrap,
                                                       const std::vector<Rank>& members, std::string& why);

}  // namespace polyring
