// The catalogue of algorithms. Tests of verify, simulate and execute iterate it, so that an algorithm is
// tested the moment it has a row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  bool has_dims;      // takes any number of dimensions; the others are flat: one dimension of all ranks
  bool lanes_differ;  // several lanes use the links differently from one; otherwise they only split the
                      // payload
  int lanes_each;     // lanes of the schedule for each of the plan's
  std::vector<Dimension> (*dimensions)(const Plan& plan, int lane);
};

std::span<const Algorithm> algorithms();

/// Throws a usage Error that lists the known names.
const Algorithm& find_algorithm(std::string_view name);

/// The schedule of a plan for `count` elements of `element_size` bytes over `ranks`; `count` is that of the
/// longer of a rank's two buffers. A pure function. Throws as check_plan() and find_algorithm() do, for a
/// negative count, for blocks of a part of an element, and as check_collective() does.
Schedule make_schedule(const Plan& plan, int ranks, Count count, int element_size,
                       Collective collective = Collective::allreduce);

/// Those that can make it, multi-ring with patterns that can.
std::vector<std::string_view> algorithm_names(Collective collective = Collective::allreduce);
/// Of dimensions, those that can make it.
std::vector<std::string_view> pattern_names(Collective collective = Collective::allreduce);

/// Whether the plan's patterns can make the collective: a reduce-scatter and an allgather need those that
/// scatter, an alltoall those that send straight.
bool can_make(const Plan& plan, Collective collective);
/// Throws a usage Error when they cannot.
void check_collective(const Plan& plan, Collective collective);

}  // namespace polyring
