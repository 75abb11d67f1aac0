// verify: proves, without running it, that a schedule is an allreduce.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "collectives/schedule.hpp"

namespace polyring {

/// The largest number of ranks that verify() takes: its work grows with their cube.
inline constexpr int kMostVerifiableRanks = 4096;

/// Follows every transfer and keeps, for each rank and each run of elements, the set of ranks whose
/// contribution is in there. Nothing when every rank ends with every contribution exactly once and the two
/// ends of each transfer agree; otherwise one sentence that names the first fault: a contribution counted
/// twice or lost, a transfer that only one end knows of, a step in which a rank both sends and overwrites an
/// element.
///
/// Throws a usage Error above kMostVerifiableRanks ranks.
///
/// `tamper`, for tests, may change or drop (by emptying its slice) each transfer before it is followed.
std::optional<std::string> verify(const Schedule& schedule,
                                  const std::function<void(Transfer&)>& tamper = nullptr);

}  // namespace polyring
