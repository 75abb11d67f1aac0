// verify_static_order: proves that the static orders of all ranks fit together.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "collectives/schedule/static_order.hpp"

namespace polyring {

/// `ranks` are the orders of all ranks, by rank. Nothing when
///
/// - all ranks have the same works, in the same slots;
/// - each rank lists each step of each work once, in the order of the program, in rounds that ascend. A work
/// has
///   one step in a round, or several exchanges. Each entry names the one before it in its slot;
/// - each slot has the memory that its works need, and no two works have one slot in the same round, on
///   whatever ranks;
/// - in each round, for each ordered pair of ranks, the sends of the one and the receives of the other are
///   equally many, and in their order of the same works, slices and element kinds;
/// - in each round, partners of an exchange agree on what they read and write, and ranks that do their
/// exchanges
///   in the order of their lists never wait for each other in a circle.
///
/// Otherwise one sentence that names the first fault.
std::optional<std::string> verify_static_order(std::span<const StaticOrder> ranks);

/// The same, that the works are those of the schedule, and what is computed: verify_programs() proves the
/// programs of each work, out of place and in place. It proves them for every order in which the ranks may
/// come to their steps, with messages that match within a stream and end only when both ends have begun. The
/// static order is one of these orders: it keeps the order of each program, it begins a step when the one
/// before has ended, and by what is proved above, messages match within a work although they have no tags,
/// and works share no memory while they are in flight. Throws a usage Error above kMostRanksOfPrograms ranks.
std::optional<std::string> verify_static_order(const Schedule& schedule, std::span<const StaticOrder> ranks);

}  // namespace polyring
