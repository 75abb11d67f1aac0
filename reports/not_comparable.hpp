// What a comparison of runs does not say.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/compare.hpp"

namespace polyring {

/// In whole sentences: times of other rank counts, calls that were timed in another way, means beside
/// medians, wrong results, runs that did not come to their end, and what only some of the runs have. Of one
/// run what is wrong with it.
std::vector<std::string> not_comparable(std::span<const ComparedRun> runs, const Comparison& comparison);

/// "medians" or "means": what the times of a result without samples are, as far as its import says; else
/// "times".
const char* statistic_of(const ResultFile& result);

/// "allreduce of float, sum": what a table is of, with its rank count where there are several.
std::string title_of(const ComparedTable& table);

}  // namespace polyring
