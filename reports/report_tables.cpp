// The tables that only reports have, and what they and their sentences compare.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "reports/published_runs.hpp"
#include "reports/table_cells.hpp"
#include "reports/tables.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

constexpr std::array kCompared{"multi-ring", "nccl", "mpi"};
constexpr std::ptrdiff_t kFewRows = 60;

auto run_of(const ScaleRow& row) {
  return std::tuple(row.machine, row.model, row.bucket, row.overlap, row.global_batch, row.strategy);
}

/// "2300", "1200 to 2300".
std::string clock_text(const HostConditions& host) {
  if (!host.least_clock_MHz || !host.most_clock_MHz) return "";
  const std::string least = fmt::format("{:.0f}", *host.least_clock_MHz);
  const std::string most = fmt::format("{:.0f}", *host.most_clock_MHz);
  return least == most ? least : fmt::format("{} to {}", least, most);
}

const RowColumns<HostConditions>& condition_columns() {
  using Of = const HostConditions&;
  constexpr Align left = Align::left;
  constexpr Align right = Align::right;
  static const RowColumns<HostConditions> all{
      {{"", "host", "", left}, [](Of of) { return of.host; }},
      {{"", "ranks", "", right}, [](Of of) { return std::to_string(of.ranks); }},
      {{"", "CPUs", "", right}, [](Of of) { return std::to_string(of.cpus); }},
      {{"", "a rank has", "CPUs", right},
       [](Of of) {
         if (of.least_cpus_of_rank == of.cpus) return std::string("not bound");
         const std::string least = std::to_string(of.least_cpus_of_rank);
         return of.most_cpus_of_rank == of.least_cpus_of_rank
                    ? least
                    : fmt::format("{} to {}", least, of.most_cpus_of_rank);
       }},
      {{"used by", "ranks", "CPUs", right}, [](Of of) { return fmt::format("{:.1f}", of.own_cpus); }},
      {{"used by", "others", "CPUs", right}, [](Of of) { return fmt::format("{:.1f}", of.other_cpus); }},
      {{"used by", "other guests", "CPUs", right},
       [](Of of) { return of.stolen_cpus >= 0.05 ? fmt::format("{:.1f}", of.stolen_cpus) : ""; }},
      {{"", "limit", "CPUs", right},
       [](Of of) { return of.cpu_limit ? fmt::format("{:.3g}", *of.cpu_limit) : ""; }},
      {{"", "throttled", "s", right},
       [](Of of) { return of.cpu_limit ? fmt::format("{:.1f}", of.throttled_s) : ""; }},
      {{"", "load before", "", right}, [](Of of) { return fmt::format("{:.2f}", of.load_average); }},
      {{"", "governor", "", left}, [](Of of) { return of.governor; }},
      {{"", "clock", "MHz", right}, clock_text},
  };
  return all;
}

}  // namespace

std::optional<Ratio> speed_ratio(const CollectiveRow& baseline, const CollectiveRow& row) {
  const std::vector<double>& ours = row.time_us.samples;
  const bool paired = !ours.empty() && ours.size() == baseline.time_us.samples.size();
  if (!paired || *std::min_element(ours.begin(), ours.end()) <= 0) return std::nullopt;
  return pairwise_ratio(baseline.time_us.samples, ours);
}

Table conditions_table(std::span<const HostConditions> hosts) {
  Table table = table_of(condition_columns());
  for (const HostConditions& host : hosts) table.add_row(cells_of(condition_columns(), host));
  return table;
}

Table contenders_table(std::span<const ScaleRow> all) {
  const std::vector<ScaleRow> rows = without_published_runs(all);
  std::map<int, std::map<std::string, const ScaleRow*>> by_gpus;
  std::vector<std::string> compared;
  for (const char* name : kCompared) {
    for (const ScaleRow& row : rows) {
      if (row.algorithm != name || row.source != Source::modelled) continue;
      if (compared.empty() || compared.back() != name) compared.emplace_back(name);
      by_gpus[row.gpus][name] = &row;
    }
  }
  std::vector<Column> columns{{"", "GPUs", "", Align::right}};
  for (const std::string& name : compared) columns.push_back({name, "efficiency", "%", Align::right});
  columns.push_back({"published", "efficiency", "%", Align::right});
  Table table(columns);
  // Several runs would need several tables, and one contender has nobody beside it.
  if (compared.size() < 2 || !all_alike(rows, run_of)) return table;
  table.caption = fmt::format("{} on {}; modelled", rows.front().model, rows.front().machine);
  for (const auto& [gpus, row_of] : by_gpus) {
    std::vector<std::string> cells{std::to_string(gpus)};
    std::string published;
    for (const std::string& name : compared) {
      const auto found = row_of.find(name);
      cells.push_back(found == row_of.end() ? "" : percent(found->second->efficiency));
      if (found != row_of.end() && published.empty())
        published = if_known(found->second->published_efficiency, percent);
    }
    cells.push_back(published);
    table.add_row(std::move(cells));
  }
  return table;
}

Table subjects_table(std::span<const CheckRow> rows) {
  Table table({{"", "subject", "", Align::left},
               {"", "size", "B", Align::right},
               {"", "verdict", "", Align::left},
               {"", "median", "", Align::right},
               {"95 % interval", "from", "", Align::right},
               {"95 % interval", "to", "", Align::right},
               {"", "at least", "", Align::right},
               {"", "at most", "", Align::right},
               {"", "unit", "", Align::left},
               {"", "attempts", "", Align::right},
               {"", "source", "", Align::left}});
  for (const CheckRow& row : rows) {
    if (!row.value) continue;
    table.add_row({row.subject, row.size_bytes > 0 ? std::to_string(row.size_bytes) : "",
                   verdict_text(row.verdict), number(row.value->median), number(row.value->ci_low),
                   number(row.value->ci_high), if_known(row.least, number), if_known(row.most, number),
                   row.unit, std::to_string(row.attempts), std::string(to_text(row.source))});
  }
  return table;
}

Table reasons_table(std::span<const CheckRow> rows) {
  const auto silent = [](const CheckRow& row) { return row.verdict == Verdict::pass; };
  const bool few = std::ssize(rows) <= kFewRows;
  Table table({{"", "verdict", "", Align::left},
               {"", "check", "", Align::left},
               {"", "subject", "", Align::left},
               {"", "why", "", Align::left},
               {"", "what to do", "", Align::left}});
  for (const CheckRow& row : worst_first(rows)) {
    if (few || !silent(row))
      table.add_row({verdict_text(row.verdict), row.check, row.subject, row.why, row.remedy});
  }
  if (!few)
    table.caption = fmt::format("{} passed and are not in this table", std::ranges::count_if(rows, silent));
  return table;
}

}  // namespace polyring
