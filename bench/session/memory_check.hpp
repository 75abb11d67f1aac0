// Whether a run fits the memory of all hosts of a job, before it takes any.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory_room.hpp"
#include "bench/session/memory_need.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

struct RankMemory {
  std::string host;
  std::string machine;  // the same for hosts that are emulated on one: they share its memory
  MemoryNeed need;
  MemoryRoom room;
  Rank process = 0;  // the first rank of its process
};

/// What there is too little of, where it is scarcest.
struct Shortage {
  std::string host;
  std::string what;  // "of memory that is available"
  int ranks = 0;
  Bytes needed;
  Bytes left;
};

/// Nothing where all ranks fit. A part of what is left is not used: MPI and others need some, too.
std::optional<Shortage> find_shortage(std::span<const RankMemory> ranks);

/// "2 ranks on node07 need 12.0 GiB, and 3.2 GiB of its memory are available".
std::string to_text(const Shortage& shortage);

/// The most elements that fit, in whole MiB where they have one; 0: none do. `below` elements do not. Asks
/// about 40 times at most.
Count largest_fitting(Count below, int element_size, const std::function<bool(Count)>& fits);

/// Collective: the same on all ranks.
std::optional<Shortage> find_shortage(const World& world, const MemoryNeed& own, const MemoryRoom& room);

/// How much of this rank's memory a run with payloads up to `size` takes. May be collective.
using NeedOf = std::function<MemoryNeed(Count)>;

/// Collective. How many of `counts`, which ascend, fit. Where none does, throws a usage Error with the
/// largest that fits; where not all do, rank 0 says so on standard error, and `sentence` has it for others.
/// `lowerable`: whether larger ones may be left out at all.
struct Fitting {
  std::size_t counts = 0;
  std::string sentence;  // empty: all of them
};
Fitting fit_counts(const World& world, std::span<const Count> counts, int element_size, bool lowerable,
                   const NeedOf& need, const MemoryRoom& room = memory_room());

}  // namespace polyring
