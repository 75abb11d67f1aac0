#include "reports/published_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "reports/table_cells.hpp"

namespace polyring {
namespace {

const RowColumns<ScaleRow>& columns() {
  using Row = const ScaleRow&;
  constexpr Align left = Align::left;
  constexpr Align right = Align::right;
  static const RowColumns<ScaleRow> all{
      {{"", "training run", "", left}, [](Row row) { return row.published_run.value_or(""); }},
      {{"", "framework", "", left, 1}, [](Row row) { return row.framework.value_or(""); }},
      {{"", "gpus", "", right}, [](Row row) { return std::to_string(row.gpus); }},
      {{"", "published", "%", right}, [](Row row) { return if_known(row.published_efficiency, percent); }},
      {{"modelled", "from", "%", right}, [](Row row) { return if_known(row.efficiency_low, percent); }},
      {{"modelled", "middle", "%", right}, [](Row row) { return percent(row.efficiency); }},
      {{"modelled", "to", "%", right}, [](Row row) { return if_known(row.efficiency_high, percent); }},
      {{"", "published is", "", left},
       [](Row row) { return std::string(is_inside(row) ? "inside" : "outside"); }},
      {{"", "most of the range comes from", "", left, 2},
       [](Row row) { return row.widest_unknown.value_or(""); }},
  };
  return all;
}

RunGroup group_of(const ScaleRow& row) {
  if (row.combinations) return RunGroup::combined;
  return row.held_out.value_or(false) ? RunGroup::held_out : RunGroup::seen;
}

const char* name_of(RunGroup group) {
  switch (group) {
    case RunGroup::held_out:
      return "held out";
    case RunGroup::seen:
      return "seen";
    case RunGroup::combined:
      return "combined";
  }
  return "";
}

std::vector<ScaleRow> in_group(std::span<const ScaleRow> rows, RunGroup group) {
  std::vector<ScaleRow> found;
  std::ranges::copy_if(rows, std::back_inserter(found),
                       [&](const ScaleRow& row) { return is_published_run(row) && group_of(row) == group; });
  return found;
}

/// The first row of each run with the most GPUs.
std::vector<ScaleRow> largest_of(std::span<const ScaleRow> rows, RunGroup group) {
  std::map<std::string, ScaleRow> largest;
  for (const ScaleRow& row : in_group(rows, group)) {
    const auto [at, is_new] = largest.emplace(*row.published_run, row);
    if (!is_new && at->second.gpus < row.gpus) at->second = row;
  }
  std::vector<ScaleRow> found;
  for (auto& [run, row] : largest) found.push_back(std::move(row));
  return found;
}

}  // namespace

bool is_published_run(const ScaleRow& row) { return row.published_run.has_value(); }

bool is_inside(const ScaleRow& row) {
  return row.efficiency_low <= row.published_efficiency && row.published_efficiency <= row.efficiency_high;
}

std::vector<ScaleRow> without_published_runs(std::span<const ScaleRow> rows) {
  std::vector<ScaleRow> found;
  std::ranges::copy_if(rows, std::back_inserter(found),
                       [](const ScaleRow& row) { return !is_published_run(row); });
  return found;
}

RunTally tally_of(std::span<const ScaleRow> rows, RunGroup group) {
  RunTally tally;
  for (const ScaleRow& row : largest_of(rows, group)) {
    const double error = row.efficiency - row.published_efficiency.value_or(0);
    ++tally.runs;
    tally.inside += is_inside(row) ? 1 : 0;
    tally.error += std::abs(error);
    tally.signed_error += error;
  }
  if (tally.runs == 0) return tally;
  tally.error /= tally.runs;
  tally.signed_error /= tally.runs;
  return tally;
}

Table published_runs_table(std::span<const ScaleRow> rows) {
  RowColumns<ScaleRow> all = columns();
  all.insert(all.begin() + 1, {{"", "list", "", Align::left},
                               [](const ScaleRow& row) { return std::string(name_of(group_of(row))); }});
  Table table = table_of(all);
  for (const RunGroup group : kRunGroups) {
    table.add_gap();
    const std::vector<ScaleRow> of_group = in_group(rows, group);
    for (const ScaleRow& row : of_group) table.add_row(cells_of(all, row));
    if (of_group.empty()) continue;
    if (group == RunGroup::seen) table.caption = "seen: compared with the model before its costs were set";
    if (group == RunGroup::combined) {
      table.caption = joined(table.caption,
                             "combined: the range is over all combinations of what was not published, "
                             "and the middle is the mean of theirs");
    }
  }
  return table;
}

Table published_runs_table(std::span<const ScaleRow> rows, RunGroup group) {
  Table table = table_of(columns());
  for (const ScaleRow& row : in_group(rows, group)) table.add_row(cells_of(columns(), row));
  return table;
}

std::string published_runs_finding(std::span<const ScaleRow> rows) {
  const RunTally held_out = tally_of(rows, RunGroup::held_out);
  const RunTally seen = tally_of(rows, RunGroup::seen);
  const RunTally combined = tally_of(rows, RunGroup::combined);
  std::string text;
  if (held_out.runs > 0) {
    text += fmt::format(
        "{} of {} published training runs that were held out lie inside the modelled range; "
        "its middle is off by {:.1f} points on average, {:+.1f} with the sign. ",
        held_out.inside, held_out.runs, 100 * held_out.error, 100 * held_out.signed_error);
  }
  if (seen.runs > 0) {
    text += fmt::format(
        "Of those that were seen before, {} of {} lie inside; the middle is off by {:.1f} points, {:+.1f}. ",
        seen.inside, seen.runs, 100 * seen.error, 100 * seen.signed_error);
  }
  if (combined.runs > 0) {
    text += fmt::format(
        "Of those with something unpublished, {} of {} lie inside the range of all combinations. ",
        combined.inside, combined.runs);
  }
  return text + "They only check the model: nothing in it is fitted to them.";
}

}  // namespace polyring
