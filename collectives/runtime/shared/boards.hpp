// Boards: how the ranks of a host come to see each other's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/shared/board.hpp"
#include "collectives/runtime/shared/segment.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// The boards of the host's ranks, this rank's own among them.
struct Boards {
  Segment own;
  std::vector<Mapping> mappings;
  std::vector<Board*> all;
};

/// Collective. `members` are the ranks of this host, ascending. Null on all ranks when a board cannot be made
/// or reached on one of them, with the reason in `why`.
std::unique_ptr<Boards> exchange_boards(const Bootstrap& bootstrap, const std::vector<Rank>& members,
                                        std::string& why);

}  // namespace polyring
