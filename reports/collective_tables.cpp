// How rows of allreduce results become tables.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/statistics.hpp"
#include "base/units.hpp"
#include "reports/table_cells.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

TimingMethod timing_of(const CollectiveRow& row) { return row.timing.value_or(TimingMethod::isolated); }

/// Rows at one point differ only in how the collective was done.
auto point_of(const CollectiveRow& row) {
  return std::tuple(row.nodes, row.ranks, row.dtype, row.op, row.size_bytes, timing_of(row));
}

/// What to call a row: the algorithm and its dimensions with their patterns, and as much more as
/// is needed to tell it from another at the same point.
class Labels {
 public:
  explicit Labels(std::span<const CollectiveRow> rows) : timings_differ_(!all_alike(rows, timing_of)) {
    std::map<std::tuple<std::string, decltype(point_of(rows[0])), bool>, const CollectiveRow*> seen;
    for (const CollectiveRow& row : rows) {
      const auto [first, fresh] = seen.emplace(std::tuple(brief(row), point_of(row), row.in_place), &row);
      if (fresh) continue;
      Detail& detail = details_[brief(row)];
      detail.implementation |= row.implementation != first->second->implementation;
      detail.patterns |= row.patterns != first->second->patterns;
      detail.lanes |= row.lanes != first->second->lanes;
      detail.chunk |= row.chunk_bytes != first->second->chunk_bytes;
    }
  }

  std::string of(const CollectiveRow& row) const {
    std::string label = detailed(row);
    if (timings_differ_) label += fmt::format(", timing {}", to_text(timing_of(row)));
    return label;
  }

 private:
  std::string detailed(const CollectiveRow& row) const {
    std::string label = brief(row);
    const auto found = details_.find(label);
    if (found == details_.end()) return label;
    if (found->second.patterns) label += fmt::format(", {}", row.patterns);
    if (found->second.lanes) label += fmt::format(", {} lanes", row.lanes);
    if (found->second.chunk) label += fmt::format(", {} chunks", to_text(Bytes{row.chunk_bytes}));
    if (found->second.implementation) label += fmt::format(", {}", row.implementation);
    return label;
  }

  struct Detail {
    bool implementation = false;
    bool patterns = false;
    bool lanes = false;
    bool chunk = false;
  };

  static std::string brief(const CollectiveRow& row) {
    const bool several_dims = row.dims.find('x') != std::string::npos;
    if (!several_dims) return row.algorithm;
    const std::string patterns = row.patterns.empty() ? "" : " " + row.patterns;
    return row.algorithm + " " + row.dims + patterns;
  }

  bool timings_differ_;
  std::map<std::string, Detail> details_;
};

/// One line of the table.
struct Line {
  const CollectiveRow* first;  // whichever of the two came first
  const CollectiveRow* out_of_place = nullptr;
  const CollectiveRow* in_place = nullptr;
  std::string label;

  const CollectiveRow& any() const { return *first; }
};

/// The rows that stand for others which do the same, and how many of these there are, or which if it is one.
class Shared {
 public:
  explicit Shared(std::span<const CollectiveRow> rows) {
    for (const CollectiveRow& row : rows) algorithms_[key(row, row.algorithm)];
    for (const CollectiveRow& row : rows) {
      const auto first = row.same_as ? algorithms_.find(key(row, *row.same_as)) : algorithms_.end();
      if (first != algorithms_.end()) first->second.push_back(row.algorithm);
    }
  }
  bool has_another(const CollectiveRow& row) const {
    return row.same_as && algorithms_.contains(key(row, *row.same_as));
  }
  std::string others(const CollectiveRow& row) const {
    const std::vector<std::string>& others = algorithms_.at(key(row, row.algorithm));
    if (others.empty() || row.same_as) return "";
    return others.size() == 1 ? " = " + others.front() : fmt::format(" = {} others", others.size());
  }

 private:
  static std::tuple<decltype(point_of(std::declval<CollectiveRow>())), bool, Source, std::string> key(
      const CollectiveRow& row, const std::string& algorithm) {
    return {point_of(row), row.in_place, row.source, algorithm};
  }
  std::map<decltype(key(std::declval<CollectiveRow>(), "")), std::vector<std::string>> algorithms_;
};

/// The rows by point, in-place beside out-of-place or below them; within these in the order in which the
/// algorithms came first. Without those that another stands for.
std::vector<Line> lines_of(std::span<const CollectiveRow> rows, Placements placements) {
  const Labels labels(rows);
  const Shared shared(rows);
  std::vector<Line> lines;
  std::map<std::string, std::size_t> first_seen;
  for (const CollectiveRow& row : rows) {
    if (shared.has_another(row)) continue;
    const std::string label = labels.of(row);
    first_seen.emplace(row.algorithm, first_seen.size());
    first_seen.emplace(label, first_seen.size());
    const auto partner = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      const CollectiveRow* taken = row.in_place ? line.in_place : line.out_of_place;
      return placements == Placements::side_by_side && taken == nullptr && line.label == label &&
             point_of(line.any()) == point_of(row) && line.any().source == row.source;
    });
    Line& line = partner != lines.end() ? *partner : lines.emplace_back(Line{&row, nullptr, nullptr, label});
    (row.in_place ? line.in_place : line.out_of_place) = &row;
  }
  const auto order = [&](const Line& line) {
    const bool second = placements == Placements::below && line.any().in_place;
    return std::tuple(point_of(line.any()), second, first_seen.at(line.any().algorithm),
                      first_seen.at(line.label));
  };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const Line& a, const Line& b) { return order(a) < order(b); });
  for (Line& line : lines) line.label += shared.others(line.any());
  return lines;
}

std::string ranks_caption(std::span<const CollectiveRow> rows) {
  if (rows.empty() || !all_alike(rows, [](const auto& row) { return std::tuple(row.ranks, row.nodes); }))
    return "";
  const CollectiveRow& row = rows.front();
  return fmt::format("{} {} on {} {}", row.ranks, row.ranks == 1 ? "rank" : "ranks", row.nodes,
                     row.nodes == 1 ? "node" : "nodes");
}

/// How they were timed, where that is not the usual way. Rows that differ in this say it in their labels.
std::string timing_caption(std::span<const CollectiveRow> rows) {
  if (rows.empty() || !all_alike(rows, timing_of)) return "";
  switch (timing_of(rows.front())) {
    case TimingMethod::isolated:
      return "";
    case TimingMethod::osu:
      return "timed as OSU does: calls on the same buffers, each after a barrier, the mean over calls and "
             "ranks";
    case TimingMethod::back_to_back:
      return "timed back to back: calls on the same buffers without a barrier, the mean over calls and ranks";
    case TimingMethod::blocking:
      return "timed blocking: calls on the same buffers, each when the one before is over, the mean over "
             "calls "
             "and ranks";
    case TimingMethod::graph:
      return "timed in a CUDA graph: calls on the same buffers back to back, the mean over calls and ranks";
  }
  return "";
}

std::string bound_text(const CollectiveRow& row) {
  // Files of earlier versions have fractions of bounds that do not hold.
  if (row.bound_us && is_faster(row.time_us, exact_timing(*row.bound_us))) return "";
  return if_known(row.bound_fraction, percent);
}

using LineColumns = RowColumns<Line>;
/// Of a line, the row that a column is about; null where it has none.
using RowOf = const CollectiveRow* (*)(const Line&);

const CollectiveRow* out_of_place(const Line& line) { return line.out_of_place; }
const CollectiveRow* in_place(const Line& line) { return line.in_place; }
const CollectiveRow* any_row(const Line& line) { return line.first; }

/// A column of what this row of a line says.
RowColumn<Line> of_row(Column column, RowOf row_of, std::string (*text)(const CollectiveRow&)) {
  const auto of_line = [row_of, text](const Line& line) {
    const CollectiveRow* row = row_of(line);
    return row == nullptr ? "" : text(*row);
  };
  return {std::move(column), of_line};
}

void add_nccl_columns(LineColumns& columns, const char* group, RowOf row_of) {
  using Row = const CollectiveRow&;
  const auto add = [&](const char* header, const char* unit, std::string (*text)(Row), int spare = 0) {
    columns.push_back(of_row({group, header, unit, Align::right, spare}, row_of, text));
  };
  add("time", "us", [](Row row) { return number(row.time_us.median); });
  add(
      "algbw", "GB/s", [](Row row) { return number(row.algbw_GBps); }, 5);
  add("busbw", "GB/s", [](Row row) { return number(row.busbw_GBps); });
  add("#wrong", "", [](Row row) { return wrong_text(row.wrong); });
}

void add_interval(LineColumns& columns, const char* group, RowOf row_of) {
  using Row = const CollectiveRow&;
  const auto add = [&](const char* header, std::string (*text)(Row)) {
    columns.push_back(of_row({group, header, "us", Align::right, 2}, row_of, text));
  };
  add("from", [](Row row) { return number(row.time_us.ci_low); });
  add("to", [](Row row) { return number(row.time_us.ci_high); });
}

RowColumn<Line> of_any_row(const char* header, const char* unit, Align align,
                           std::string (*text)(const CollectiveRow&)) {
  return of_row({"", header, unit, align}, any_row, text);
}

std::string size_text(const CollectiveRow& row) { return std::to_string(row.size_bytes); }
std::string count_text(const CollectiveRow& row) { return std::to_string(row.count); }
std::string type_text(const CollectiveRow& row) { return row.dtype; }
std::string op_text(const CollectiveRow& row) { return row.op; }
std::string root_text(const CollectiveRow&) { return "-1"; }
std::string place_text(const CollectiveRow& row) { return row.in_place ? "in" : "out"; }
std::string source_text(const CollectiveRow& row) { return std::string(to_text(row.source)); }

RowColumn<Line> algorithm_column() {
  return {{"", "algorithm", "", Align::left}, [](const Line& line) { return line.label; }};
}

void add_columns_side_by_side(LineColumns& columns) {
  columns.push_back(of_any_row("size", "B", Align::right, size_text));
  columns.push_back(of_any_row("count", "elements", Align::right, count_text));
  columns.push_back(of_any_row("type", "", Align::right, type_text));
  columns.push_back(of_any_row("redop", "", Align::right, op_text));
  columns.push_back(of_any_row("root", "", Align::right, root_text));
  add_nccl_columns(columns, "out-of-place", out_of_place);
  add_nccl_columns(columns, "in-place", in_place);
  columns.push_back(algorithm_column());
  add_interval(columns, "95 % interval", out_of_place);
  add_interval(columns, "in-place 95 %", in_place);
  columns.push_back(of_row({"of bound", "out", "%", Align::right}, out_of_place, bound_text));
  columns.push_back(of_row({"of bound", "in", "%", Align::right}, in_place, bound_text));
  columns.push_back(of_any_row("source", "", Align::left, source_text));
}

/// What all rows have in common goes into the caption.
void add_columns_below(LineColumns& columns, std::span<const CollectiveRow> rows, std::string& caption) {
  const auto add_where_it_varies = [&](const char* header, std::string (*text)(const CollectiveRow&)) {
    if (rows.empty() || !all_alike(rows, text)) {
      columns.push_back(of_any_row(header, "", Align::left, text));
    } else if (text(rows.front()) != "none") {  // no operation
      caption = joined(caption, text(rows.front()));
    }
  };
  columns.push_back(of_any_row("size", "B", Align::right, size_text));
  add_where_it_varies("type", type_text);
  add_where_it_varies("redop", op_text);
  columns.push_back(of_any_row("place", "", Align::left, place_text));
  columns.push_back(algorithm_column());
  add_nccl_columns(columns, "", any_row);
  add_interval(columns, "95 % interval", any_row);
  columns.push_back(of_row({"", "of bound", "%", Align::right}, any_row, bound_text));
  add_where_it_varies("source", source_text);
}

std::string verdict(const std::optional<Ratio>& ratio) {
  if (!ratio) return "not paired";
  if (ratio->coverage < 0.95) return "too few samples";
  if (ratio->ci_low > 1) return "faster";
  if (ratio->ci_high < 1) return "slower";
  return "undecided";
}

void check_baseline(std::span<const CollectiveRow> rows, const std::string& baseline) {
  std::set<std::string> known;
  for (const CollectiveRow& row : rows) known.insert(row.algorithm);
  if (known.contains(baseline)) return;
  usage_error("no row has the baseline algorithm '{}'; choose one of: {}", baseline, fmt::join(known, ", "));
}

}  // namespace

Table collective_table(std::span<const CollectiveRow> rows, Placements placements) {
  std::string caption = ranks_caption(rows);
  LineColumns columns;
  if (caption.empty() && !rows.empty()) {
    const auto ranks = [](const CollectiveRow& row) { return std::to_string(row.ranks); };
    const auto nodes = [](const CollectiveRow& row) { return std::to_string(row.nodes); };
    columns = {of_any_row("ranks", "", Align::right, ranks), of_any_row("nodes", "", Align::right, nodes)};
  }
  if (placements == Placements::below) {
    add_columns_below(columns, rows, caption);
  } else {
    add_columns_side_by_side(columns);
  }
  Table table = table_of(columns);
  table.caption = joined(joined(caption, timing_caption(rows)),
                         interval_caveat(rows, [](const auto& row) -> const Timing& { return row.time_us; }));
  const std::vector<Line> lines = lines_of(rows, placements);
  const CollectiveRow* previous = nullptr;
  for (const Line& line : lines) {
    const CollectiveRow& row = line.any();
    if (previous != nullptr && point_of(*previous) != point_of(row)) table.add_gap();
    previous = &row;
    table.add_row(cells_of(columns, line));
  }
  return table;
}

Table comparison_table(std::span<const CollectiveRow> rows, const std::string& baseline) {
  check_baseline(rows, baseline);
  const std::string ratio_name = baseline + " time / time";
  Table table({{"", "size", "B", Align::right},
               {"", "placement", "", Align::left},
               {"", "algorithm", "", Align::left},
               {"", "time", "us", Align::right},
               {ratio_name, "median", "", Align::right},
               {ratio_name, "from", "", Align::right},
               {ratio_name, "to", "", Align::right},
               {"", "verdict", "", Align::left},
               {"", "source", "", Align::left}});
  table.caption =
      fmt::format("Above 1: faster than {}; from and to bound the median with 95 % confidence", baseline);
  const std::vector<Line> lines = lines_of(rows, Placements::side_by_side);
  for (const auto placement : {&Line::out_of_place, &Line::in_place}) {
    for (const Line& line : lines) {
      const CollectiveRow* row = line.*placement;
      if (row == nullptr || row->algorithm == baseline) continue;
      const auto contender = std::find_if(lines.begin(), lines.end(), [&](const Line& other) {
        return other.*placement != nullptr && (other.*placement)->algorithm == baseline &&
               point_of(other.any()) == point_of(*row);
      });
      std::optional<Ratio> ratio;
      if (contender != lines.end()) ratio = speed_ratio(*((*contender).*placement), *row);
      table.add_row({std::to_string(row->size_bytes), row->in_place ? "in-place" : "out-of-place", line.label,
                     number(row->time_us.median), ratio ? number(ratio->median) : "",
                     ratio ? number(ratio->ci_low) : "", ratio ? number(ratio->ci_high) : "", verdict(ratio),
                     std::string(to_text(row->source))});
    }
  }
  return table;
}

}  // namespace polyring
