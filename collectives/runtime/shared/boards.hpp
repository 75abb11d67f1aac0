// Boards: how the ranks of a host come to see each other's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/runtime/shared/board.hpp"
#include "collectives/runtime/shared/segment.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// Collective over the world: each rank's bytes.
using Allgather = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

/// The boards of the host's ranks, this rank's own among them.
struct Boards {
  Segment own;
  std::vector<Mapping> mappings;
  std::vector<Board*> all;
};

/// Collective over the world. `members` are the ranks of this host, ascending. Null on all ranks when a board
/// cannot be made or reached on one of them, with the reason in `why`.
std::unique_ptr<Boards> exchange_boards(Rank rank, const std::vector<Rank>& members,
                                        const Allgather& allgather, std::string& why);

}  // namespace polyring
