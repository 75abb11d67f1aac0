// Runs of collectives side by side: which rows are of the same thing, and how their times compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/statistics.hpp"
#include "reports/collective_names.hpp"
#include "reports/result.hpp"

namespace polyring {

/// One run: of each collective, at most one result of a number of ranks.
struct ComparedRun {
  std::string label;  // "A"
  std::string name;   // of its file, and which of the runs in it
  std::vector<ResultFile> results;
};

/// The runs that a file has. A file of several collectives, or rank counts, is one run; one with two results
/// of the same kind is two runs, "NAME #1" and "NAME #2". They have no labels yet. Throws a usage Error for
/// results without rows of a collective.
std::vector<ComparedRun> runs_of_file(const std::string& name, std::vector<ResultFile> results);
/// "A", "B", …
void label_runs(std::vector<ComparedRun>& runs);
inline constexpr std::size_t kMostComparedRuns = 26;

/// What can be said of a ratio.
enum class Finding {
  baseline,      // the other one's
  faster,        // the interval excludes 1
  slower,        // the same
  undecided,     // the interval includes 1
  few_samples,   // fewer than an interval of 95 % takes
  no_samples,    // a ratio alone
  other_timing,  // calls were timed in another way: the ratio is also one of these ways
  wrong,         // the result is wrong, so that it has no time
  missing,       // no row, or none to compare with
};
/// In a table: "faster", "no samples"; empty for the first and the last.
std::string_view to_text(Finding finding);

/// What a machine should give for a row.
struct Judgement {
  std::optional<double> bound_fraction;  // nothing where the bound is unknown, or does not hold
  std::string limit;                     // what limits, or why nothing is known
  std::optional<std::pair<double, double>> expected_GBps;
  std::optional<double> expected_fraction{};  // bus bandwidth, as a part of the low end of what is expected
  std::string basis;                          // what the expected interval rests on
  std::string verdict;                        // "pass", "fail", "undecided", "no data"
};

/// What one run has in a line.
struct ComparedCell {
  const ResultFile* result = nullptr;
  const CollectiveRow* row = nullptr;  // of this result; null: the run has none
  Finding finding = Finding::missing;
  std::optional<Ratio> ratio;  // to the baseline: of times, or of bus bandwidths (ComparedTable::by_busbw)
  std::optional<Judgement> judged;
};

/// Rows of one size and placement.
struct ComparedLine {
  std::uint64_t size_bytes = 0;
  bool in_place = false;
  std::string contender;            // an algorithm; empty: the fastest of each run
  std::vector<ComparedCell> cells;  // one for each run
};

/// All that can be set side by side: a collective, a type where it reduces, and an operation.
struct ComparedTable {
  std::string collective;
  std::string dtype;                // empty where it does not reduce, since the type does not matter then
  std::string op;                   // empty likewise
  std::optional<int> ranks;         // where a run has several rank counts
  std::vector<ComparedLine> lines;  // by contender, placement and size; the fastest of each run come first
  std::vector<bool> by_busbw;       // of each run: it had another number of ranks than the baseline
};

struct Comparison {
  std::size_t baseline = 0;
  std::vector<ComparedTable> tables;
};

/// Aligns the rows of all runs; `runs` must outlive the result. Lines of a contender that one run alone has
/// are there too. Of several rows of a contender at one point the fastest counts. Throws a usage Error where
/// nothing is in two runs.
Comparison compare_runs(std::span<const ComparedRun> runs, std::size_t baseline);

/// The rows of a result of a collective.
const std::vector<CollectiveRow>& collective_rows(const ResultFile& result);
}  // namespace polyring
