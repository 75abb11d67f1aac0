// Gathers of more bytes than one call of MPI counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace polyring {

/// One call of MPI_Allgatherv or its kind, whose counts and displacements are int.
struct GatherRound {
  std::size_t offset = 0;   // in each rank's bytes
  std::vector<int> counts;  // of each rank
  std::vector<int> begins;

  std::size_t total() const;
};

/// Rounds that gather `sizes[r]` bytes from each rank r, each round at most `at_once` bytes of all ranks
/// together, or one of each rank where there are more ranks. A single round where that is enough; none for no
/// bytes. `at_once` is 1 to 1 GiB.
std::vector<GatherRound> gather_rounds(std::span<const std::int64_t> sizes, Bytes at_once);

}  // namespace polyring
