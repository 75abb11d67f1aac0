// The catalogue of algorithms. Tests of verify, simulate and execute iterate it, so that an algorithm is
// tested the moment it has a row.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  bool has_dims;      // takes any number of dimensions; the others are flat: one dimension of all ranks
  bool lanes_differ;  // several lanes use the links differently from one; otherwise they only split the
                      // payload
  Schedule (*build)(const Plan& plan, Count count, int element_size);
};

std::span<const Algorithm> algorithms();

/// Throws a usage Error that lists the known names.
const Algorithm& find_algorithm(std::string_view name);

/// The schedule of a plan for `count` elements of `element_size` bytes over `ranks`. A pure function.
/// Throws as check_plan() and find_algorithm() do, and for a negative count.
Schedule make_schedule(const Plan& plan, int ranks, Count count, int element_size);

}  // namespace polyring
