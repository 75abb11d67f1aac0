// A comparison of runs as tables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/compare.hpp"
#include "reports/differences.hpp"
#include "reports/tables.hpp"

namespace polyring {

/// Which run each letter is.
Table runs_table(std::span<const ComparedRun> runs, std::size_t baseline);
/// What differs, a row each.
Table differences_table(std::span<const ComparedRun> runs, const RunDifferences& differences);

/// The lines of one table for people: times and bus bandwidths of all runs, the ratio of each to the
/// baseline, and, where rows are judged, the fraction of the bound and the verdict.
Table compared_table(std::span<const ComparedRun> runs, const Comparison& comparison,
                     const ComparedTable& of);

/// What limits each run on the machine that its rows are judged by, and what is expected there; none where
/// they are not judged.
std::vector<std::string> judgement_sentences(std::span<const ComparedRun> runs, const ComparedTable& table);

/// All of it for programs, at full precision: a row for each run in each line.
Table compared_rows(std::span<const ComparedRun> runs, const Comparison& comparison);

}  // namespace polyring
