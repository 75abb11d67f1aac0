#include "reports/not_comparable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

/// Of the first row of a run.
const CollectiveRow& any_row(const ComparedRun& run) { return collective_rows(run.results.front()).front(); }

TimingMethod timing_of(const ComparedRun& run) {
  return any_row(run).timing.value_or(TimingMethod::isolated);
}

const char* calls_text(TimingMethod method) {
  switch (method) {
    case TimingMethod::isolated:
      return "isolated calls on fresh input, until the slowest rank ended";
    case TimingMethod::osu:
      return "calls that each follow a barrier, on the same buffers";
    case TimingMethod::back_to_back:
      return "calls back to back, on the same buffers, which overlap";
    case TimingMethod::blocking:
      return "calls that each begin when the one before is over, on the same buffers";
    case TimingMethod::graph:
      return "calls of a CUDA graph, on the same buffers";
  }
  return "";
}

void add_timing(std::vector<std::string>& notes, const ComparedRun& base, const ComparedRun& run) {
  const TimingMethod ours = timing_of(run);
  const TimingMethod theirs = timing_of(base);
  if (ours != theirs) {
    std::string note = fmt::format(
        "{} timed {}, and {} {}: part of their ratio is the way of timing, most of all at small sizes.",
        base.label, calls_text(theirs), run.label, calls_text(ours));
    const bool base_is_ours = any_row(base).source != Source::imported;
    if (base_is_ours || any_row(run).source != Source::imported) {
      const TimingMethod wanted = base_is_ours ? ours : theirs;
      const std::string option =
          wanted == TimingMethod::graph ? "-G N" : fmt::format("--timing {}", to_text(wanted));
      note += fmt::format(" polyring {} {} measures as {} did.", run.results.front().collective, option,
                          base_is_ours ? run.label : base.label);
    }
    notes.push_back(std::move(note));
  }
  const bool samples = !any_row(run).time_us.samples.empty();
  const bool base_samples = !any_row(base).time_us.samples.empty();
  if (samples != base_samples) {
    const ComparedRun& with = samples ? run : base;
    const ComparedRun& without = samples ? base : run;
    const std::string_view statistic = statistic_of(without.results.front());
    notes.push_back(
        fmt::format("{} has medians of samples, and {} {} without samples: {}whether a difference is real "
                    "cannot be told.",
                    with.label, without.label, statistic,
                    statistic == "means" ? "a few slow calls make a mean larger, and " : ""));
  } else if (!samples) {
    notes.push_back(fmt::format("{} and {} have no samples: whether a difference is real cannot be told.",
                                base.label, run.label));
  }
}

void add_ranks(std::vector<std::string>& notes, std::span<const ComparedRun> runs,
               const Comparison& comparison) {
  const std::size_t baseline = comparison.baseline;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const bool differs = std::ranges::any_of(
        comparison.tables, [&](const ComparedTable& table) { return bool{table.by_busbw[run]}; });
    if (differs) {
      notes.push_back(fmt::format(
          "{} has {} and {} {}: their times are not of the same work, so that bus bandwidths are compared.",
          runs[baseline].label, counted(any_row(runs[baseline]).ranks, "rank"), runs[run].label,
          any_row(runs[run]).ranks));
    }
  }
}

/// "8B to 512B", "8B", "8B to 1MiB, with gaps"
std::string sizes_text(const std::set<std::uint64_t>& sizes) {
  if (sizes.size() == 1) return to_text(Bytes{*sizes.begin()});
  return fmt::format("{} sizes from {} to {}", sizes.size(), to_text(Bytes{*sizes.begin()}),
                     to_text(Bytes{*sizes.rbegin()}));
}

/// What some runs alone have of a table: whole tables, placements, sizes.
void add_unpaired(std::vector<std::string>& notes, std::span<const ComparedRun> runs,
                  const ComparedTable& table) {
  std::map<std::vector<std::string>, std::map<bool, std::set<std::uint64_t>>> alone;  // by who has them
  std::set<std::string> present;
  for (const ComparedLine& line : table.lines) {
    if (line.contender != table.lines.front().contender) continue;
    std::vector<std::string> labels;
    for (std::size_t run = 0; run < runs.size(); ++run)
      if (line.cells[run].row != nullptr) labels.push_back(runs[run].label);
    present.insert(labels.begin(), labels.end());
    if (labels.size() < runs.size()) alone[labels][line.in_place].insert(line.size_bytes);
  }
  if (present.size() < 2) {
    notes.push_back(fmt::format("Only {} has {}.", fmt::join(present, ""), title_of(table)));
    return;
  }
  for (auto& [labels, places] : alone) {
    std::vector<std::string> parts;
    if (places.size() == 2 && places[false] == places[true]) {
      parts.push_back(sizes_text(places[false]) + ", in and out of place");
    } else {
      for (const auto& [in_place, sizes] : places)
        parts.push_back(fmt::format("{} {}", sizes_text(sizes), in_place ? "in place" : "out of place"));
    }
    notes.push_back(fmt::format("Only {} {} {}: {}.", fmt::join(labels, " and "),
                                labels.size() == 1 ? "has" : "have", title_of(table),
                                fmt::join(parts, ", and ")));
  }
}

void add_of_run(std::vector<std::string>& notes, const ComparedRun& run) {
  std::int64_t wrong = 0;
  bool noted = false;
  for (const ResultFile& result : run.results) {
    const WrongResults found = wrong_results(result);
    wrong += static_cast<std::int64_t>(found.rows);
    noted = noted || !found.notes.empty();
    if (result.partial)
      notes.push_back(fmt::format("{} did not come to its end: its {} has {}.", run.label, result.collective,
                                  *result.partial));
  }
  if (wrong > 0) {
    notes.push_back(fmt::format("{} of {} {} wrong: what is wrong has no time.", counted(wrong, "result"),
                                run.label, wrong == 1 ? "is" : "are"));
  } else if (noted) {
    notes.push_back(
        fmt::format("Some results of {} are wrong, and no row says which: see its notes.", run.label));
  }
}

}  // namespace

const char* statistic_of(const ResultFile& result) {
  for (const std::string& note : result.notes) {
    if (note.starts_with("Times are medians")) return "medians";
    if (note.starts_with("Times are") && note.find("means") != std::string::npos) return "means";
  }
  return "times";
}

std::string title_of(const ComparedTable& table) {
  std::string title = table.collective;
  if (!table.dtype.empty()) title += fmt::format(" of {}", table.dtype);
  if (!table.op.empty() && table.op != "none") title += ", " + table.op;
  if (table.ranks) title += ", " + counted(*table.ranks, "rank");
  return title;
}

std::vector<std::string> not_comparable(std::span<const ComparedRun> runs, const Comparison& comparison) {
  std::vector<std::string> notes;
  if (runs.size() == 1) {
    add_of_run(notes, runs.front());
    return notes;
  }
  add_ranks(notes, runs, comparison);
  for (std::size_t run = 0; run < runs.size(); ++run)
    if (run != comparison.baseline) add_timing(notes, runs[comparison.baseline], runs[run]);
  for (const ComparedRun& run : runs) add_of_run(notes, run);
  for (const ComparedTable& table : comparison.tables) add_unpaired(notes, runs, table);
  return notes;
}

}  // namespace polyring
