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

/// The row of each run with the most GPUs.
std::vector<ScaleRow> largest_of(std::span<const ScaleRow> rows, bool held_out) {
  std::map<std::string, ScaleRow> largest;
  for (const ScaleRow& row : rows) {
    if (!is_published_run(row) || row.held_out != held_out) continue;
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

std::vector<ScaleRow> published_runs_of(std::span<const ScaleRow> rows) {
  std::vector<ScaleRow> found;
  std::ranges::copy_if(rows, std::back_inserter(found), is_published_run);
  return found;
}

std::vector<ScaleRow> without_published_runs(std::span<const ScaleRow> rows) {
  std::vector<ScaleRow> found;
  std::ranges::copy_if(rows, std::back_inserter(found),
                       [](const ScaleRow& row) { return !is_published_run(row); });
  return found;
}

RunTally tally_of(std::span<const ScaleRow> rows, bool held_out) {
  RunTally tally;
  for (const ScaleRow& row : largest_of(rows, held_out)) {
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

std::string_view group_text(bool held_out) {
  return held_out ? "held out" : "seen before its costs were set";
}

Table published_runs_table(std::span<const ScaleRow> rows) {
  RowColumns<ScaleRow> all = columns();
  all.push_back({{"", "compared with the model", "", Align::left},
                 [](const ScaleRow& row) { return std::string(group_text(row.held_out.value_or(false))); }});
  Table table = table_of(all);
  for (const bool held_out : {true, false}) {
    table.add_gap();
    for (const ScaleRow& row : rows)
      if (is_published_run(row) && row.held_out == held_out) table.add_row(cells_of(all, row));
  }
  return table;
}

Table published_runs_table(std::span<const ScaleRow> rows, bool held_out) {
  Table table = table_of(columns());
  for (const ScaleRow& row : rows)
    if (is_published_run(row) && row.held_out == held_out) table.add_row(cells_of(columns(), row));
  return table;
}

std::string published_runs_finding(std::span<const ScaleRow> rows) {
  std::string text = "Published training runs beside the model, each at its most GPUs:";
  const char* before = " ";
  for (const bool held_out : {true, false}) {
    const RunTally tally = tally_of(rows, held_out);
    if (tally.runs == 0) continue;
    text += fmt::format(
        "{}{} of {} that were {} lie in the modelled range, whose middle is off by {:.1f} points on average "
        "({:+.1f} with its sign)",
        before, tally.inside, tally.runs, group_text(held_out), 100 * tally.error, 100 * tally.signed_error);
    before = "; ";
  }
  return text + ". This list only checks: nothing in the model rests on it.";
}

}  // namespace polyring
