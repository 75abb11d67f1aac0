// verify_programs: proves, without running them, that the programs of all ranks do what their schedule's
// collective says, in whatever order the ranks come to run them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "collectives/schedule/program.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

/// The largest number of ranks that verify_programs() takes.
inline constexpr int kMostRanksOfPrograms = 64;

/// `programs` are those of one stream, by rank. In place, the shorter of a rank's two buffers is its block of
/// the longer, or both are one; an alltoall is not done so. Runs them once, with sets of ranks in place of
/// elements, and gives each begin and end of an operation its vector clock. Nothing when
///
/// - every message and every exchange has its other end, of equally many elements of the same kind; a send
///   ends only when its receiver awaits it;
/// - of any two operations that use the same memory, one of them writing, one ends before the other begins:
///   then whatever else the order of the ranks is, they compute the same;
/// - nobody still uses a rank's memory when its program ends;
/// - every rank ends with what the collective gives it, each contribution exactly once, and each result is
///   marked as the last of its element once; where partial results are apart, no other sum is rounded.
///
/// Otherwise one sentence that names the first fault. Throws a usage Error above kMostRanksOfPrograms ranks.
std::optional<std::string> verify_programs(const Schedule& schedule, Stream stream,
                                           std::span<const Program> programs, bool in_place = false);

/// The same for every stream of a schedule, of programs that are compiled for ranks that reach each other's
/// memory as `reach` says (empty: none), out of place and in place. Streams whose programs are equal are
/// proved once.
std::optional<std::string> verify_programs(const Schedule& schedule,
                                           const std::function<bool(Rank, Rank)>& reach, Partials partials);

}  // namespace polyring
