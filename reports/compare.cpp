#include "reports/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

/// What a table is of. `ranks` is 0 where runs of different rank counts stand side by side.
struct TableKey {
  std::size_t collective = 0;  // in kCollectives
  std::string dtype;
  std::string op;
  int ranks = 0;
  auto operator<=>(const TableKey&) const = default;
};

/// Where a line is: its contender in the order of appearance, its placement, its size.
using LineKey = std::tuple<std::size_t, bool, std::uint64_t>;

struct Entry {
  std::size_t run = 0;
  const ResultFile* result = nullptr;
  const CollectiveRow* row = nullptr;
};

std::size_t place_of(std::string_view collective) {
  return static_cast<std::size_t>(std::ranges::find(kCollectives, collective) - kCollectives.begin());
}

bool is_wrong(const CollectiveRow& row) { return row.wrong.value_or(0) > 0; }

bool has_time(const CollectiveRow* row) {
  return row != nullptr && !is_wrong(*row) && row->time_us.median > 0;
}

/// Whether any run has one collective on several numbers of ranks. Then only equal numbers stand side by
/// side.
bool splits_by_ranks(std::span<const ComparedRun> runs, std::string_view collective) {
  return std::ranges::any_of(runs, [&](const ComparedRun& run) {
    std::set<int> counts;
    for (const ResultFile& result : run.results)
      if (result.collective == collective)
        for (const CollectiveRow& row : collective_rows(result)) counts.insert(row.ranks);
    return counts.size() > 1;
  });
}

std::map<TableKey, std::vector<Entry>> entries_by_table(std::span<const ComparedRun> runs) {
  std::map<TableKey, std::vector<Entry>> tables;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const ResultFile& result : runs[run].results) {
      const bool split = splits_by_ranks(runs, result.collective);
      const bool typed = reduces(result.collective);
      for (const CollectiveRow& row : collective_rows(result)) {
        const TableKey key{place_of(result.collective), typed ? row.dtype : "", typed ? row.op : "",
                           split ? row.ranks : 0};
        tables[key].push_back({run, &result, &row});
      }
    }
  }
  return tables;
}

TimingMethod timing_of(const CollectiveRow& row) { return row.timing.value_or(TimingMethod::isolated); }

Finding finding_of(const Ratio& time) {
  if (time.ci_high < 1) return Finding::faster;
  return time.ci_low > 1 ? Finding::slower : Finding::undecided;
}

/// `by_busbw`: the ratio is that of bus bandwidths.
void set_ratio(ComparedCell& cell, const CollectiveRow& base, bool by_busbw) {
  const std::vector<double>& ours = cell.row->time_us.samples;
  const std::vector<double>& theirs = base.time_us.samples;
  const auto positive = [](const std::vector<double>& samples) {
    return !samples.empty() && *std::ranges::min_element(samples) > 0;
  };
  const bool sampled = positive(ours) && positive(theirs);
  if (by_busbw && (base.busbw_GBps <= 0 || cell.row->busbw_GBps <= 0)) return;
  const double plain = cell.row->time_us.median / base.time_us.median;
  Ratio ratio = sampled ? ratio_of_medians(ours, theirs) : Ratio{plain, plain, plain, 0};
  if (by_busbw) {
    const double busbw = cell.row->busbw_GBps / base.busbw_GBps;
    const double factor = busbw * ratio.median;  // what bandwidths differ by at equal times
    ratio = {busbw, factor / ratio.ci_high, factor / ratio.ci_low, ratio.coverage};
  }
  cell.ratio = ratio;
  cell.finding = timing_of(*cell.row) != timing_of(base) ? Finding::other_timing
                 : !sampled                              ? Finding::no_samples
                 : ratio.coverage < 0.95                 ? Finding::few_samples
                 : by_busbw ? finding_of({1 / ratio.median, 1 / ratio.ci_high, 1 / ratio.ci_low, 0})
                            : finding_of(ratio);
}

void set_ratios(ComparedLine& line, std::size_t baseline, const std::vector<bool>& by_busbw) {
  for (ComparedCell& cell : line.cells)
    if (cell.row != nullptr && is_wrong(*cell.row)) cell.finding = Finding::wrong;
  ComparedCell& base = line.cells[baseline];
  if (!has_time(base.row)) return;
  base.finding = Finding::baseline;
  for (std::size_t run = 0; run < line.cells.size(); ++run) {
    if (run != baseline && has_time(line.cells[run].row))
      set_ratio(line.cells[run], *base.row, by_busbw[run]);
  }
}

/// The faster of two rows; either may be missing.
const CollectiveRow* faster_of(const CollectiveRow* a, const CollectiveRow* b) {
  if (!has_time(a)) return has_time(b) || a == nullptr ? b : a;
  return has_time(b) && b->time_us.median < a->time_us.median ? b : a;
}

/// The ranks of each run in a table; 0 for one without rows, the first for one with several numbers.
std::vector<int> ranks_by_run(const std::vector<Entry>& entries, std::size_t runs) {
  std::vector<int> ranks(runs, 0);
  for (const Entry& entry : entries)
    if (ranks[entry.run] == 0) ranks[entry.run] = entry.row->ranks;
  return ranks;
}

/// Whether each run has one contender at most: the lines of the fastest then say all.
bool are_all_alone(const std::vector<Entry>& entries) {
  std::map<std::size_t, std::set<std::string_view>> contenders;
  for (const Entry& entry : entries) contenders[entry.run].insert(entry.row->algorithm);
  return std::ranges::all_of(contenders, [](const auto& of) { return of.second.size() == 1; });
}

/// The contenders in the order in which they are shown: first those that more runs have.
std::vector<std::string> contenders_in_order(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  std::map<std::string, std::set<std::size_t>> runs;
  for (const Entry& entry : entries) {
    if (!runs.contains(entry.row->algorithm)) names.push_back(entry.row->algorithm);
    runs[entry.row->algorithm].insert(entry.run);
  }
  std::ranges::stable_sort(names, [&](const auto& a, const auto& b) {
    return std::min<std::size_t>(runs[a].size(), 2) > std::min<std::size_t>(runs[b].size(), 2);
  });
  return names;
}

ComparedTable table_of(const TableKey& key, const std::vector<Entry>& entries, std::size_t runs,
                       std::size_t baseline) {
  ComparedTable table{.collective = std::string(kCollectives[key.collective]),
                      .dtype = key.dtype,
                      .op = key.op,
                      .ranks = key.ranks > 0 ? std::optional(key.ranks) : std::nullopt,
                      .lines = {},
                      .by_busbw = std::vector<bool>(runs, false)};
  const std::vector<int> ranks = ranks_by_run(entries, runs);
  for (std::size_t run = 0; run < runs; ++run)
    table.by_busbw[run] = ranks[run] > 0 && ranks[baseline] > 0 && ranks[run] != ranks[baseline];
  const std::vector<std::string> contenders = contenders_in_order(entries);
  const bool alone = are_all_alone(entries);
  const bool one = contenders.size() == 1;
  std::map<LineKey, ComparedLine> lines;
  const auto add = [&](std::size_t place, const std::string& contender, const Entry& entry) {
    const CollectiveRow& row = *entry.row;
    ComparedLine& line = lines[{place, row.in_place, row.size_bytes}];
    line.size_bytes = row.size_bytes;
    line.in_place = row.in_place;
    line.contender = contender;
    line.cells.resize(runs);
    ComparedCell& cell = line.cells[entry.run];
    if (faster_of(cell.row, entry.row) != entry.row) return;
    cell.result = entry.result;
    cell.row = entry.row;
  };
  for (const Entry& entry : entries) {
    if (!one) add(0, "", entry);
    const auto found = std::ranges::find(contenders, entry.row->algorithm);
    if (one || !alone) add(1 + static_cast<std::size_t>(found - contenders.begin()), *found, entry);
  }
  for (auto& [at, line] : lines) {
    set_ratios(line, baseline, table.by_busbw);
    table.lines.push_back(std::move(line));
  }
  return table;
}

bool has_a_pair(const ComparedTable& table) {
  return std::ranges::any_of(table.lines, [](const ComparedLine& line) {
    return std::ranges::count_if(line.cells, [](const ComparedCell& cell) { return cell.row != nullptr; }) >
           1;
  });
}

/// "allreduce of float, sum, out of place, 8B to 1GiB": what a run has, for who asks why nothing matches.
std::string contents_of(const ComparedRun& run) {
  std::vector<std::string> parts;
  for (const ResultFile& result : run.results) {
    std::set<std::string> types;
    std::set<std::string_view> places;
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (const CollectiveRow& row : collective_rows(result)) {
      if (reduces(result.collective)) types.insert(fmt::format(" of {}, {}", row.dtype, row.op));
      places.insert(row.in_place ? "in" : "out of");
      least = std::min(least, row.size_bytes);
      most = std::max(most, row.size_bytes);
    }
    parts.push_back(fmt::format("{}{}, {} place, {} to {}", result.collective, fmt::join(types, " and"),
                                fmt::join(places, " and "), to_text(Bytes{least}), to_text(Bytes{most})));
    if (parts.size() == 4) break;
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

const std::vector<CollectiveRow>& collective_rows(const ResultFile& result) {
  return std::get<std::vector<CollectiveRow>>(result.rows);
}

std::string_view to_text(Finding finding) {
  switch (finding) {
    case Finding::faster:
      return "faster";
    case Finding::slower:
      return "slower";
    case Finding::undecided:
      return "undecided";
    case Finding::few_samples:
      return "few samples";
    case Finding::no_samples:
      return "no samples";
    case Finding::other_timing:
      return "other timing";
    case Finding::wrong:
      return "wrong result";
    case Finding::baseline:
    case Finding::missing:
      break;
  }
  return "";
}

std::vector<ComparedRun> runs_of_file(const std::string& name, std::vector<ResultFile> results) {
  std::vector<ComparedRun> runs;
  std::map<std::pair<std::string, int>, std::size_t> seen;
  for (ResultFile& result : results) {
    const auto* rows = std::get_if<std::vector<CollectiveRow>>(&result.rows);
    if (rows == nullptr) {
      usage_error(
          "'{}' is a result of polyring {}, whose rows have no like; compare runs of {}, or set this one "
          "beside "
          "others with polyring report",
          name, result.kind(), fmt::join(kCollectives, ", "));
    }
    if (rows->empty() && wrong_results(result).any())
      usage_error("all that '{}' measured was wrong, and has no time; leave it out", name);
    if (rows->empty()) usage_error("'{}' has no row yet; leave it out, or run its command again", name);
    const std::size_t run = seen[{result.collective, rows->front().ranks}]++;
    if (run >= runs.size()) runs.push_back({});
    runs[run].results.push_back(std::move(result));
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i].name = runs.size() == 1 ? name : fmt::format("{} #{}", name, i + 1);
  return runs;
}

void label_runs(std::vector<ComparedRun>& runs) {
  if (runs.size() > kMostComparedRuns)
    usage_error("{} runs are too many to compare; name {} at most", runs.size(), kMostComparedRuns);
  char letter = 'A';
  for (ComparedRun& run : runs) run.label = std::string(1, letter++);
}

Comparison compare_runs(std::span<const ComparedRun> runs, std::size_t baseline) {
  Comparison comparison;
  comparison.baseline = baseline;
  bool any = runs.size() == 1;  // which is judged by itself
  for (const auto& [key, entries] : entries_by_table(runs)) {
    ComparedTable& table = comparison.tables.emplace_back(table_of(key, entries, runs.size(), baseline));
    any |= has_a_pair(table);
  }
  if (!any) {
    std::vector<std::string> contents;
    for (const ComparedRun& run : runs)
      contents.push_back(fmt::format("{} has {}", run.name, contents_of(run)));
    usage_error(
        "nothing in these runs is of the same collective, type, operation, placement and size: {}; "
        "measure one of them as the other was",
        fmt::join(contents, "; "));
  }
  return comparison;
}

}  // namespace polyring
