// What differs between runs, beside their times: what one must know before one believes a ratio.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/compare.hpp"

namespace polyring {

struct RunDifference {
  std::string what;                 // "ranks", "NCCL_ALGO"
  std::vector<std::string> values;  // of each run; "?" where it is not recorded
};

struct RunDifferences {
  std::vector<RunDifference> differing;
  std::vector<std::string> same;             // "ranks 8"
  std::vector<std::string> recorded_in_one;  // "compiler": the others do not say
};

/// Versions, environment, hosts and placement, binding, conditions, timing, plans, machines. A value that one
/// run alone records is no difference.
RunDifferences differences_of(std::span<const ComparedRun> runs);

/// The notes of the runs, each once, as "A, B: …"; without where it was imported from.
std::vector<std::string> notes_of_runs(std::span<const ComparedRun> runs);

}  // namespace polyring
