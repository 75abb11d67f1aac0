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

/// The rows by point, in-place beside out-of-place; within a point in the order in which the algorithms came
/// first.
std::vector<Line> lines_of(std::span<const CollectiveRow> rows) {
  const Labels labels(rows);
  std::vector<Line> lines;
  std::map<std::string, std::size_t> first_seen;
  for (const CollectiveRow& row : rows) {
    const std::string label = labels.of(row);
    first_seen.emplace(label, first_seen.size());
    const auto partner = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      const CollectiveRow* taken = row.in_place ? line.in_place : line.out_of_place;
      return taken == nullptr && line.label == label && point_of(line.any()) == point_of(row) &&
             line.any().source == row.source;
    });
    Line& line = partner != lines.end() ? *partner : lines.emplace_back(Line{&row, nullptr, nullptr, label});
    (row.in_place ? line.in_place : line.out_of_place) = &row;
  }
  std::stable_sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) {
    return std::tuple(point_of(a.any()), first_seen.at(a.label)) <
           std::tuple(point_of(b.any()), first_seen.at(b.label));
  });
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
  }
  return "";
}

std::string bound_text(const CollectiveRow& row) {
  // Files of earlier versions have fractions of bounds that do not hold.
  if (row.bound_us && is_faster(row.time_us, exact_timing(*row.bound_us))) return "";
  return if_known(row.bound_fraction, percent);
}

using LineColumns = RowColumns<Line>;
/// Of a line, the row out of place or that in place; null where it has none.
using Placement = const CollectiveRow* Line::*;

/// A column of what the line's row of this placement says.
RowColumn<Line> of_row(Column column, Placement placement, std::string (*text)(const CollectiveRow&)) {
  const auto of_line = [placement, text](const Line& line) {
    return line.*placement == nullptr ? "" : text(*(line.*placement));
  };
  return {std::move(column), of_line};
}

void add_nccl_columns(LineColumns& columns, const char* group, Placement placement) {
  using Row = const CollectiveRow&;
  const auto add = [&](const char* header, const char* unit, std::string (*text)(Row)) {
    columns.push_back(of_row({group, header, unit, Align::right}, placement, text));
  };
  add("time", "us", [](Row row) { return number(row.time_us.median); });
  add("algbw", "GB/s", [](Row row) { return number(row.algbw_GBps); });
  add("busbw", "GB/s", [](Row row) { return number(row.busbw_GBps); });
  add("#wrong", "", [](Row row) { return wrong_text(row.wrong); });
}

void add_interval(LineColumns& columns, const char* group, Placement placement) {
  using Row = const CollectiveRow&;
  const auto add = [&](const char* header, std::string (*text)(Row)) {
    columns.push_back(of_row({group, header, "us", Align::right}, placement, text));
  };
  add("from", [](Row row) { return number(row.time_us.ci_low); });
  add("to", [](Row row) { return number(row.time_us.ci_high); });
}

LineColumns collective_columns(bool ranks_vary, bool any_in_place) {
  LineColumns columns;
  const auto add = [&](const char* header, const char* unit, std::string (*text)(const Line&),
                       Align align = Align::right) {
    columns.push_back({{"", header, unit, align}, text});
  };
  if (ranks_vary) {
    add("ranks", "", [](const Line& line) { return std::to_string(line.any().ranks); });
    add("nodes", "", [](const Line& line) { return std::to_string(line.any().nodes); });
  }
  add("size", "B", [](const Line& line) { return std::to_string(line.any().size_bytes); });
  add("count", "elements", [](const Line& line) { return std::to_string(line.any().count); });
  add("type", "", [](const Line& line) { return line.any().dtype; });
  add("redop", "", [](const Line& line) { return line.any().op; });
  add("root", "", [](const Line&) { return std::string("-1"); });
  add_nccl_columns(columns, "out-of-place", &Line::out_of_place);
  add_nccl_columns(columns, "in-place", &Line::in_place);
  add(
      "algorithm", "", [](const Line& line) { return line.label; }, Align::left);
  add_interval(columns, "95 % interval", &Line::out_of_place);
  if (any_in_place) {
    add_interval(columns, "in-place 95 %", &Line::in_place);
    columns.push_back(of_row({"of bound", "out", "%", Align::right}, &Line::out_of_place, bound_text));
    columns.push_back(of_row({"of bound", "in", "%", Align::right}, &Line::in_place, bound_text));
  } else {
    columns.push_back(of_row({"", "of bound", "%", Align::right}, &Line::out_of_place, bound_text));
  }
  add(
      "source", "", [](const Line& line) { return std::string(to_text(line.any().source)); }, Align::left);
  return columns;
}

/// Nothing when the samples do not come in pairs.
std::optional<Ratio> speed_ratio(const CollectiveRow& baseline, const CollectiveRow& row) {
  const std::vector<double>& ours = row.time_us.samples;
  const bool paired = !ours.empty() && ours.size() == baseline.time_us.samples.size();
  if (!paired || *std::min_element(ours.begin(), ours.end()) <= 0) return std::nullopt;
  return pairwise_ratio(baseline.time_us.samples, ours);
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

Table collective_table(std::span<const CollectiveRow> rows, bool both_placements) {
  const std::vector<Line> lines = lines_of(rows);
  const std::string caption = ranks_caption(rows);
  const bool ranks_vary = caption.empty() && !rows.empty();
  const bool any_in_place =
      both_placements || std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.in_place; });
  const LineColumns columns = collective_columns(ranks_vary, any_in_place);
  Table table = table_of(columns);
  table.caption = joined(joined(caption, timing_caption(rows)),
                         interval_caveat(rows, [](const auto& row) -> const Timing& { return row.time_us; }));
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
  const std::vector<Line> lines = lines_of(rows);
  for (const auto placement : {&Line::out_of_place, &Line::in_place}) {
    for (const Line& line : lines) {
      const CollectiveRow* row = line.*placement;
      if (row == nullptr || row->algorithm == baseline) continue;
      const auto contender = std::find_if(lines.begin(), lines.end(), [&](const Line& other) {
        return other.*placement != nullptr && (other.*placement)->algorithm == baseline &&
               point_of(other.any()) == point_of(*row);
      });
      const auto ratio =
          contender == lines.end() ? std::nullopt : speed_ratio(*((*contender).*placement), *row);
      table.add_row({std::to_string(row->size_bytes), row->in_place ? "in-place" : "out-of-place", line.label,
                     number(row->time_us.median), ratio ? number(ratio->median) : "",
                     ratio ? number(ratio->ci_low) : "", ratio ? number(ratio->ci_high) : "", verdict(ratio),
                     std::string(to_text(row->source))});
    }
  }
  return table;
}

}  // namespace polyring
