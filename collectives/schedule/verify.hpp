// verify: proves, without running it, that a schedule does what its collective says.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "collectives/schedule/schedule.hpp"

namespace polyring {

/// The largest number of ranks that verify() takes: its work grows with their cube.
inline constexpr int kMostVerifiableRanks = 4096;
/// For an alltoall: its memory grows with their cube.
inline constexpr int kMostVerifiableRanksOfAlltoall = 512;
inline int most_verifiable_ranks(Collective collective) {
  return collective == Collective::alltoall ? kMostVerifiableRanksOfAlltoall : kMostVerifiableRanks;
}

struct ProofOptions {
  /// For tests: may change or drop (by emptying its slice) each transfer before it is followed.
  std::function<void(Transfer&)> tamper;
  /// Runs of elements are followed so many together that the sets of ranks in them take at most so many words
  /// of 64 bits, but one run at least.
  std::size_t most_words = std::size_t{1} << 23;
};

/// Follows every transfer and keeps, for each rank and each run of elements, the set of ranks whose
/// contribution is in there, and where in their payloads it was. Nothing when every rank ends with what the
/// collective gives it, each contribution exactly once, and the two ends of each transfer agree; otherwise
/// one sentence that names the first fault: a contribution counted twice or lost, a transfer that only one
/// end knows of, a step in which a rank both sends and overwrites an element.
///
/// Throws a usage Error above most_verifiable_ranks().
std::optional<std::string> verify(const Schedule& schedule, const ProofOptions& options = {});

}  // namespace polyring
