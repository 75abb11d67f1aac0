// How rows of training and scaling results become tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "base/units.hpp"
#include "reports/published_runs.hpp"
#include "reports/table_cells.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

/// A property of a run: a column where it varies, else a word in the caption.
template <typename Row>
struct Property {
  std::string name;
  Align align;
  bool always_a_column;
  std::string (*text)(const Row&);
  int spare = 0;  // see Column
};

std::string strategy_text(const ScaleRow& row) { return row.strategy.value_or(""); }
std::string strategy_text(const TrainRow&) { return ""; }
std::string global_batch_text(const ScaleRow& row) {
  return row.global_batch ? std::to_string(*row.global_batch) : "";
}
std::string global_batch_text(const TrainRow&) { return ""; }

/// The patterns too, unless all are rings.
std::string dims_text(const auto& row) {
  const std::string patterns = row.patterns.value_or("");
  const std::vector<std::string> each = split(patterns, '+');
  const bool rings = std::ranges::all_of(each, [](const std::string& pattern) { return pattern == "ring"; });
  return rings ? row.dims : row.dims + " " + patterns;
}

template <typename Row>
const std::vector<Property<Row>>& properties() {
  static const std::vector<Property<Row>> all{
      {"machine", Align::left, false, [](const Row& row) { return row.machine; }},
      {"model", Align::left, false, [](const Row& row) { return row.model; }},
      {"algorithm", Align::left, true, [](const Row& row) { return row.algorithm; }},
      {"strategy", Align::left, false, [](const Row& row) { return strategy_text(row); }},
      {"dims", Align::left, false, [](const Row& row) { return dims_text(row); }, 6},
      {"lanes", Align::right, false, [](const Row& row) { return std::to_string(row.lanes); }, 8},
      {"gpus", Align::right, true, [](const Row& row) { return std::to_string(row.gpus); }},
      {"nodes", Align::right, true, [](const Row& row) { return std::to_string(row.nodes); }, 7},
      {"global batch", Align::right, false, [](const Row& row) { return global_batch_text(row); }},
      {"batch", Align::right, false, [](const Row& row) { return std::to_string(row.batch); }},
      {"bucket", Align::left, false, [](const Row& row) { return row.bucket; }, 9},
      {"overlap", Align::left, false, [](const Row& row) { return std::string(row.overlap ? "yes" : "no"); },
       9},
  };
  return all;
}

/// The properties, each as a column or in the caption, the columns of `more`, and the source as a property.
template <typename Row>
RowColumns<Row> with_properties(const RowColumns<Row>& more, std::span<const Row> rows,
                                std::string& caption) {
  RowColumns<Row> columns;
  for (const Property<Row>& property : properties<Row>()) {
    if (property.always_a_column || !all_alike(rows, property.text)) {
      columns.push_back({{"", property.name, "", property.align, property.spare}, property.text});
    } else if (!rows.empty() && !property.text(rows.front()).empty()) {
      caption +=
          fmt::format("{}{} {}", caption.empty() ? "" : "; ", property.name, property.text(rows.front()));
    }
  }
  columns.insert(columns.end(), more.begin(), more.end());
  const auto source = [](const Row& row) { return std::string(to_text(row.source)); };
  if (rows.empty() || !all_alike(rows, source)) {
    columns.push_back({{"", "source", "", Align::left}, source});
  } else {
    caption = joined(caption, source(rows.front()));
  }
  return columns;
}

/// The unit of the throughput: of what the rows count.
template <typename Row>
void name_samples(RowColumns<Row>& columns, std::span<const Row> rows) {
  const auto samples = [](const Row& row) { return row.samples.value_or("images"); };
  const std::string counted = rows.empty()               ? "images"
                              : all_alike(rows, samples) ? samples(rows.front())
                                                         : "samples";
  for (RowColumn<Row>& column : columns)
    if (column.column.header == "throughput") column.column.unit = counted + "/s";
}

/// By how many percent ours is above the published figure: of the speedup, or else of the efficiency.
std::string difference(const ScaleRow& row) {
  const auto relative = [](double ours, double published) {
    return published > 0 ? fmt::format("{:+.1f}", 100 * (ours / published - 1)) : "";
  };
  if (row.published_speedup) return relative(row.speedup, *row.published_speedup);
  if (row.published_efficiency) return relative(row.efficiency, *row.published_efficiency);
  return "";
}

const RowColumns<ScaleRow>& scale_columns() {
  using Row = const ScaleRow&;
  constexpr Align right = Align::right;
  static const RowColumns<ScaleRow> all{
      {{"", "iteration", "ms", right, 3}, [](Row row) { return number(row.iteration_ms); }},
      {{"95 % of steps", "from", "ms", right},
       [](Row row) { return if_known(row.iteration_low_ms, number); }},
      {{"95 % of steps", "to", "ms", right}, [](Row row) { return if_known(row.iteration_high_ms, number); }},
      {{"", "throughput", "images/s", right, 4}, [](Row row) { return number(row.images_per_second); }},
      {{"", "speedup", "", right}, [](Row row) { return number(row.speedup); }},
      {{"", "efficiency", "%", right}, [](Row row) { return percent(row.efficiency); }},
      {{"range", "from", "%", right}, [](Row row) { return if_known(row.efficiency_low, percent); }},
      {{"range", "to", "%", right}, [](Row row) { return if_known(row.efficiency_high, percent); }},
      {{"", "exposed", "ms", right, 5}, [](Row row) { return number(row.exposed_comm_ms); }},
      {{"", "bubble", "%", right}, [](Row row) { return if_known(row.bubble, percent); }},
      {{"", "feed", "GB/s", right}, [](Row row) { return if_known(row.feed_GBps, number); }},
      {{"", "limit", "", Align::left}, [](Row row) { return row.limit.value_or(""); }},
      {{"published", "speedup", "", right}, [](Row row) { return if_known(row.published_speedup, number); }},
      {{"published", "efficiency", "%", right},
       [](Row row) { return if_known(row.published_efficiency, percent); }},
      {{"", "difference", "%", right}, difference},
  };
  return all;
}

const RowColumns<TrainRow>& train_columns() {
  using Row = const TrainRow&;
  constexpr Align right = Align::right;
  static const RowColumns<TrainRow> all{
      {{"", "iteration", "ms", right, 3}, [](Row row) { return number(row.iteration_ms.median); }},
      {{"95 % interval", "from", "ms", right, 2}, [](Row row) { return number(row.iteration_ms.ci_low); }},
      {{"95 % interval", "to", "ms", right, 2}, [](Row row) { return number(row.iteration_ms.ci_high); }},
      {{"", "throughput", "images/s", right, 5}, [](Row row) { return number(row.images_per_second); }},
      {{"", "efficiency", "%", right}, [](Row row) { return percent(row.efficiency); }},
      {{"", "compute", "ms", right, 6}, [](Row row) { return number(row.compute_ms); }},
      {{"", "slow-down", "%", right, 1},
       [](Row row) {
         return if_known(row.compute_slowdown, [](double ratio) { return percent(ratio - 1); });
       }},
      {{"", "communication", "ms", right, 5}, [](Row row) { return if_known(row.communication_ms, number); }},
      {{"", "exposed", "ms", right, 4}, [](Row row) { return number(row.exposed_comm_ms); }},
      {{"", "#wrong", "", right}, [](Row row) { return wrong_text(row.wrong); }},
  };
  return all;
}

const RowColumns<TuneRow>& tune_columns() {
  using Row = const TuneRow&;
  constexpr Align right = Align::right;
  static const RowColumns<TuneRow> all{
      {{"", "size", "B", right}, [](Row row) { return std::to_string(row.size_bytes); }},
      {{"", "tried", "", right, 3}, [](Row row) { return std::to_string(row.tried); }},
      {{"default", "plan", "", Align::left}, [](Row row) { return row.default_plan; }},
      {{"default", "time", "us", right}, [](Row row) { return number(row.default_us); }},
      {{"best other", "plan", "", Align::left}, [](Row row) { return row.other_plan; }},
      {{"best other", "time", "us", right}, [](Row row) { return number(row.other_us); }},
      {{"default time / time", "median", "", right}, [](Row row) { return number(row.ratio); }},
      {{"default time / time", "from", "", right, 2}, [](Row row) { return number(row.ratio_low); }},
      {{"default time / time", "to", "", right, 2}, [](Row row) { return number(row.ratio_high); }},
      {{"", "chosen", "", Align::left},
       [](Row row) { return std::string(row.other_chosen ? "other" : "default"); }},
  };
  return all;
}

}  // namespace

std::vector<const ScaleRow*> in_scale_order(std::span<const ScaleRow> rows) {
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> first_seen;
  const auto series = [](const ScaleRow& row) { return std::tuple(row.machine, row.model, row.algorithm); };
  std::vector<const ScaleRow*> sorted;
  for (const ScaleRow& row : rows) {
    first_seen.emplace(series(row), first_seen.size());
    sorted.push_back(&row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [&](const ScaleRow* a, const ScaleRow* b) {
    return std::pair(first_seen.at(series(*a)), a->gpus) < std::pair(first_seen.at(series(*b)), b->gpus);
  });
  return sorted;
}

Table train_table(std::span<const TrainRow> rows, std::span<const TrainRow> all) {
  if (all.empty()) all = rows;
  std::string caption;
  RowColumns<TrainRow> columns = with_properties(train_columns(), all, caption);
  name_samples(columns, all);
  Table table = table_of(columns);
  table.caption = joined(
      caption, interval_caveat(all, [](const auto& row) -> const Timing& { return row.iteration_ms; }));
  for (const TrainRow& row : rows) table.add_row(cells_of(columns, row));
  return table;
}

Table plans_table(std::span<const TrainRow> rows) {
  Table table({{"", "algorithm", "", Align::left},
               {"", "bucket", "", Align::right},
               {"", "buckets", "", Align::right},
               {"", "plan", "", Align::left}});
  for (const TrainRow& row : rows) {
    const auto plans = row.plans.value_or(std::vector<BucketPlan>{});
    if (all_alike(std::span<const BucketPlan>(plans), [](const BucketPlan& plan) { return plan.plan; }))
      continue;
    table.add_gap();
    for (const BucketPlan& of_bucket : plans) {
      table.add_row({row.algorithm, to_text(Bytes{of_bucket.size_bytes}), std::to_string(of_bucket.buckets),
                     of_bucket.plan});
    }
  }
  return table;
}

Table gpu_profile_table(std::span<const TrainRow> rows) {
  Table table({{"", "algorithm", "", Align::left},
               {"", "gpus", "", Align::right},
               {"", "time", "%", Align::right},
               {"", "time", "ms", Align::right},
               {"", "calls", "", Align::right},
               {"", "activity", "", Align::left}});
  for (const TrainRow& row : rows) {
    if (!row.gpu_profile) continue;
    table.add_gap();
    for (const GpuShare& share : *row.gpu_profile) {
      table.add_row({row.algorithm, std::to_string(row.gpus), if_known(share.share, percent),
                     number(share.time_ms), share.share ? std::to_string(share.calls) : "", share.activity});
    }
  }
  return table;
}

Table scale_table(std::span<const ScaleRow> all) {
  const std::vector<ScaleRow> kept = without_published_runs(all);
  const std::span<const ScaleRow> rows = kept;
  std::string caption;
  RowColumns<ScaleRow> columns = with_properties(scale_columns(), rows, caption);
  name_samples(columns, rows);
  Table table = table_of(columns);
  table.caption = caption;
  const ScaleRow* previous = nullptr;
  for (const ScaleRow* row : in_scale_order(rows)) {
    if (previous != nullptr && previous->algorithm != row->algorithm) table.add_gap();
    previous = row;
    table.add_row(cells_of(columns, *row));
  }
  return table;
}

Table tune_table(std::span<const TuneRow> rows) {
  Table table = table_of(tune_columns());
  if (!rows.empty()) {
    const TuneRow& row = rows.front();
    table.caption = fmt::format(
        "multi-ring on {} of {} over {}; times are medians over out of place and in place; "
        "another plan is chosen if it is faster with 95 % confidence",
        counted(row.ranks, "rank"), counted(row.nodes, "host"), row.transport);
  }
  for (const TuneRow& row : rows) table.add_row(cells_of(tune_columns(), row));
  return table;
}

Table table(const Rows& rows) {
  struct Choose {
    Table operator()(const std::vector<CollectiveRow>& of) const { return collective_table(of); }
    Table operator()(const std::vector<TrainRow>& of) const { return train_table(of); }
    Table operator()(const std::vector<ScaleRow>& of) const {
      return of.empty() || !without_published_runs(of).empty() ? scale_table(of) : published_runs_table(of);
    }
    Table operator()(const std::vector<TuneRow>& of) const { return tune_table(of); }
    Table operator()(const std::vector<CheckRow>& of) const { return check_table(of); }
  };
  return std::visit(Choose{}, rows);
}

}  // namespace polyring
