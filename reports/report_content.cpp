#include "reports/report_content.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/printable.hpp"
#include "reports/published_runs.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

std::string algorithm_of(const CollectiveRow& row) { return row.algorithm; }

/// The vendor's call that the others are compared with, or nothing.
std::string baseline_of(const std::vector<CollectiveRow>& rows) {
  for (const char* vendor : {"mpi", "nccl"}) {
    if (std::ranges::find(rows, vendor, algorithm_of) != rows.end()) return vendor;
  }
  return "";
}

/// "a: ranks 0-3, b: ranks 4-7", which stays short for many ranks on a host.
std::string hosts(const std::vector<RankHost>& placement) {
  std::string text;
  for (std::size_t i = 0; i < placement.size();) {
    std::size_t end = i + 1;
    while (end < placement.size() && placement[end].host == placement[i].host &&
           placement[end].rank == placement[end - 1].rank + 1) {
      ++end;
    }
    const std::string ranks = end - i == 1
                                  ? fmt::format("rank {}", placement[i].rank)
                                  : fmt::format("ranks {}-{}", placement[i].rank, placement[end - 1].rank);
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", placement[i].host, ranks);
    i = end;
  }
  return text;
}

/// "leaf07: a, b; leaf08: c".
std::string leaf_switches(const std::vector<LeafHosts>& leaves) {
  std::string text;
  for (const LeafHosts& leaf : leaves)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", leaf.name.empty() ? "not known" : leaf.name,
                        fmt::join(leaf.hosts, ", "));
  return text;
}

Table inputs_table(const std::vector<Input>& inputs) {
  Table table(
      {{"", "input", "", Align::left}, {"", "value", "", Align::left}, {"", "source", "", Align::left}});
  for (const Input& input : inputs) table.add_row({input.name, input.value, input.source});
  return table;
}

std::vector<CheckRow> rows_of(const std::vector<CheckRow>& rows, std::string_view check) {
  std::vector<CheckRow> found;
  std::ranges::copy_if(rows, std::back_inserter(found),
                       [&](const CheckRow& row) { return row.check == check && row.value; });
  return found;
}

std::string meaning_of(Source source) {
  switch (source) {
    case Source::measured:
      return "timed here";
    case Source::emulated:
      return "real code, timed over links that were slowed down on one machine";
    case Source::modelled:
      return "computed from a topology and the inputs listed";
    case Source::published:
      return "taken from the literature";
    case Source::imported:
      return "read from another benchmark's log";
  }
  return "";
}

void add_sources(const auto& rows, std::set<Source>& sources) {
  for (const auto& row : rows) sources.insert(row.source);
}

/// Of a title that a user gave: it stays short; all of it is in the result.
constexpr std::size_t kLongestTitle = 100;

bool is_published(const ScaleRow& row) { return row.published_speedup || row.published_efficiency; }

struct TablesOf {
  std::vector<ReportTable> found{};

  void add(ReportTopic topic, const char* id, std::string title, Table table) {
    if (!table.empty()) found.push_back({topic, id, std::move(title), std::move(table)});
  }
  /// The first rows of a part of the main one.
  void add_top(ReportTopic topic, std::string title, Table table, std::size_t shown) {
    if (table.empty()) return;
    if (table.size() > shown) title += fmt::format(": the first {} of {}", shown, table.size());
    found.push_back({topic, "", std::move(title), std::move(table), shown, true});
  }

  /// Its first rows are on the page, and all in a file.
  void add_trends(Table table) {
    if (table.empty()) return;
    constexpr std::size_t kShown = 12;
    found.push_back({ReportTopic::trends, "trends", "Medians of each round", std::move(table), kShown, true});
  }

  void operator()(const std::vector<CollectiveRow>& rows) {
    add(ReportTopic::curves, "", "", collective_table(rows, Placements::below));
    const std::string baseline = baseline_of(rows);
    if (!baseline.empty())
      add(ReportTopic::contenders, "comparison", "Against " + baseline, comparison_table(rows, baseline));
  }
  void operator()(const std::vector<TrainRow>& rows) {
    add(ReportTopic::step, "", "", train_table(rows));
    add(ReportTopic::step, "plans", "The plan of each size of bucket", plans_table(rows));
    add(ReportTopic::step, "gpu-profile", "What the GPU of rank 0 did in a step", gpu_profile_table(rows));
  }
  void operator()(const std::vector<ScaleRow>& rows) {
    add(ReportTopic::published_runs, "published-runs", "Published training runs", published_runs_table(rows));
    add(ReportTopic::scaling, "", "", scale_table(rows));
    add(ReportTopic::contenders, "contenders", "Efficiency by GPUs", contenders_table(rows));
  }
  void operator()(const std::vector<TuneRow>& rows) { add(ReportTopic::tuning, "", "", tune_table(rows)); }
  void operator()(const std::vector<CheckRow>& rows) {
    add(ReportTopic::checks, "checks", "", check_table(rows));
    add(ReportTopic::checks, "reasons", "Why, and what to do", reasons_table(rows));
    std::vector<CheckRow> pairs = rows_of(rows, "pairs.allreduce");
    const auto median = [](const CheckRow& row) { return row.value->median; };
    std::ranges::stable_sort(pairs, {}, median);
    add_top(ReportTopic::pairs, "Slowest pairs first", subjects_table(pairs), 12);
    std::vector<CheckRow> ranks = rows_of(rows, "stragglers");
    std::ranges::stable_sort(ranks, std::greater{}, median);
    add_top(ReportTopic::stragglers, "Slowest ranks first", subjects_table(ranks), 12);
    add_trends(trends_table(rows));
  }
};

}  // namespace

ReportTopic topic_of(const ReportChart& chart) {
  static const std::map<std::string_view, ReportTopic> topics{{"topology", ReportTopic::topology},
                                                              {"bus-bandwidth", ReportTopic::curves},
                                                              {"latency", ReportTopic::curves},
                                                              {"ratio", ReportTopic::contenders},
                                                              {"scaling", ReportTopic::scaling},
                                                              {"timeline", ReportTopic::step},
                                                              {"published-runs", ReportTopic::published_runs},
                                                              {"pairs", ReportTopic::pairs},
                                                              {"stragglers", ReportTopic::stragglers},
                                                              {"trend", ReportTopic::trends}};
  return topics.at(chart.kind);
}

std::string kind_name(const ResultFile& result) {
  static const std::map<std::string_view, std::string_view> names{
      {"allreduce", "Allreduce"}, {"reduce-scatter", "Reduce-scatter"},
      {"allgather", "Allgather"}, {"alltoall", "All-to-all"},
      {"train", "Training step"}, {"scale", "Scaling"},
      {"tune", "Tuning"},         {"accept", "Acceptance"}};
  return std::string(names.at(result.kind()));
}

std::string title_of(const ReportSection& section) {
  const auto& title = section.result.title;
  return fmt::format("{}: {}", kind_name(section.result),
                     title ? printable_line(*title, kLongestTitle) : section.name);
}

std::string title_of(std::span<const ReportSection> sections) {
  std::set<std::string> titles;
  for (const ReportSection& section : sections)
    if (section.result.title) titles.insert(printable_line(*section.result.title, kLongestTitle));
  return titles.size() == 1 ? *titles.begin() : "Polyring report";
}

std::vector<ReportTable> tables_of(const ReportSection& section) {
  TablesOf tables;
  std::visit([&](const auto& rows) { tables(rows); }, section.result.rows);
  std::vector<Input> inputs = section.result.inputs;
  std::erase_if(inputs, [](const Input& input) { return input.name == kPlannedCheck; });
  tables.add(ReportTopic::inputs, "inputs", "What it was given", inputs_table(inputs));
  if (section.result.conditions)
    tables.add(ReportTopic::conditions, "conditions", "What else the machines did",
               conditions_table(*section.result.conditions));
  return std::move(tables.found);
}

std::vector<ReportFact> sources_of(std::span<const ReportSection> sections) {
  std::set<Source> used;
  for (const ReportSection& section : sections) {
    std::visit([&](const auto& rows) { add_sources(rows, used); }, section.result.rows);
    const auto* scaled = std::get_if<std::vector<ScaleRow>>(&section.result.rows);
    if (scaled != nullptr && std::ranges::any_of(*scaled, is_published)) used.insert(Source::published);
  }
  std::vector<ReportFact> facts;
  for (const Source source : used) facts.push_back({std::string(to_text(source)), meaning_of(source)});
  return facts;
}

std::vector<ReportFact> environment_of(const ResultFile& result) {
  std::vector<ReportFact> facts;
  if (!result.placement.empty()) facts.push_back({"hosts", hosts(result.placement)});
  if (result.leaves) facts.push_back({"leaf switches", leaf_switches(*result.leaves)});
  for (const auto& [name, version] : result.versions) facts.push_back({name, version});
  for (const auto& [name, value] : result.environment) facts.push_back({name, value, true});
  return facts;
}

std::vector<ReportFact> origin_of(const ResultFile& result) {
  const auto known = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  return {{"command", known(result.command), true},
          {"created", result.created},
          {"polyring", fmt::format("{}, commit {}", result.polyring_version, known(result.commit))}};
}

}  // namespace polyring
