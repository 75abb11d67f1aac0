#include "reports/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/files.hpp"
#include "base/printable.hpp"
#include "reports/report_findings.hpp"

namespace polyring {
namespace {

using Json = nlohmann::ordered_json;

/// Columns beyond so many letters are left out on paper: A4 has no more room.
constexpr std::size_t kPrinted = 118;
/// Columns of more letters have sentences, those of few are never broken into lines on a screen.
constexpr std::size_t kProse = 40;
constexpr std::size_t kShort = 28;
/// What comes first stays short, whatever names are; all of it is in the tables.
constexpr std::size_t kLongest = 400;

struct PageTopic {
  ReportTopic topic;
  const char* id;
  const char* title;
};

constexpr std::array<PageTopic, 13> kTopics{{
    {ReportTopic::topology, "topology", "Topology"},
    {ReportTopic::curves, "curves", "Bandwidth and latency"},
    {ReportTopic::contenders, "contenders", "Multi-ring, NCCL and MPI side by side"},
    {ReportTopic::published_runs, "published-runs", "Published training runs beside the model"},
    {ReportTopic::scaling, "scaling", "Speedup and efficiency"},
    {ReportTopic::step, "step", "Training step"},
    {ReportTopic::tuning, "tuning", "Tuning"},
    {ReportTopic::pairs, "pairs", "Pairs of hosts"},
    {ReportTopic::stragglers, "stragglers", "Stragglers"},
    {ReportTopic::trends, "trends", "Round after round"},
    {ReportTopic::checks, "checks", "Checks"},
    {ReportTopic::conditions, "conditions", "Conditions"},
    {ReportTopic::inputs, "inputs", "Inputs"},
}};

std::string plain(std::string_view text) { return printable_line(text); }

Json json_of(const ReportChart& chart) {
  return {{"name", chart.name}, {"title", plain(chart.title)}, {"finding", plain(chart.finding)}};
}

Json json_of(const ReportSection& section, const ReportTable& of) {
  const Table::Widths all = of.table.widths();
  const Table::Widths printed = of.table.widths(kPrinted);
  Json columns = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Column& column = of.table.columns()[i];
    if (all[i] == 0) continue;
    columns.push_back({{"group", column.group},
                       {"header", column.header},
                       {"unit", column.unit},
                       {"right", column.align == Align::right},
                       {"prose", column.align == Align::left && all[i] > kProse},
                       {"short", all[i] <= kShort},
                       {"printed", printed[i] != 0}});
  }
  Json rows = Json::array();
  for (std::size_t row = 0; row < std::min(of.shown, of.table.size()); ++row) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != 0) cells.push_back(plain(of.table.cells(row)[i]));
    rows.push_back({{"gap", of.table.has_gap_before(row)}, {"cells", std::move(cells)}});
  }
  return {{"title", of.title},       {"caption", plain(of.table.caption)}, {"csv", csv_name(section, of)},
          {"size", of.table.size()}, {"columns", std::move(columns)},      {"rows", std::move(rows)}};
}

Json json_of(std::span<const ReportFact> facts) {
  Json list = Json::array();
  for (const ReportFact& fact : facts)
    list.push_back({{"name", plain(fact.name)}, {"value", plain(fact.value)}, {"code", fact.code}});
  return list;
}

Json json_of(const ReportFinding& finding) {
  Json reasons = Json::array();
  for (const CheckRow& row : finding.reasons) {
    reasons.push_back({{"verdict", to_text(row.verdict)},
                       {"check", plain(row.check)},
                       {"subject", printable_line(row.subject, kLongest)},
                       {"why", printable_line(row.why, kLongest)},
                       {"remedy", printable_line(row.remedy, kLongest)}});
  }
  return {{"level", finding.level},
          {"word", finding.word},
          {"text", printable_line(finding.text, 2 * kLongest)},
          {"reasons", std::move(reasons)},
          {"more_reasons", finding.more_reasons}};
}

Json part(std::string title, Json charts, Json tables) {
  return {{"title", plain(title)}, {"charts", std::move(charts)}, {"tables", std::move(tables)}};
}

/// What all results have about a topic.
Json parts_of(ReportTopic topic, std::span<const ReportSection> sections,
              std::span<const ReportChart> overlaid) {
  Json parts = Json::array();
  const auto of_topic = [topic](std::span<const ReportChart> all) {
    Json charts = Json::array();
    for (const ReportChart& chart : all)
      if (topic_of(chart) == topic) charts.push_back(json_of(chart));
    return charts;
  };
  if (Json charts = of_topic(overlaid); !charts.empty())
    parts.push_back(part("Runs side by side", std::move(charts), Json::array()));
  for (const ReportSection& section : sections) {
    Json charts = of_topic(section.charts);
    Json tables = Json::array();
    for (const ReportTable& table : tables_of(section))
      if (table.topic == topic) tables.push_back(json_of(section, table));
    if (!charts.empty() || !tables.empty())
      parts.push_back(part(title_of(section), std::move(charts), std::move(tables)));
  }
  return parts;
}

/// Results that ran at the same place share an entry.
Json environments(std::span<const ReportSection> sections) {
  std::vector<std::pair<std::string, Json>> found;
  for (const ReportSection& section : sections) {
    Json facts = json_of(environment_of(section.result));
    if (facts.empty()) continue;
    const auto same = std::ranges::find(found, facts, &std::pair<std::string, Json>::second);
    if (same == found.end())
      found.emplace_back(title_of(section), std::move(facts));
    else
      same->first += "; " + title_of(section);
  }
  Json list = Json::array();
  for (auto& [title, facts] : found) list.push_back({{"title", plain(title)}, {"facts", std::move(facts)}});
  return list;
}

Json origins(std::span<const ReportSection> sections) {
  Json list = Json::array();
  for (const ReportSection& section : sections) {
    Json notes = Json::array();
    for (const std::string& note : section.result.notes) notes.push_back(plain(note));
    list.push_back({{"title", title_of(section)},
                    {"facts", json_of(origin_of(section.result))},
                    {"notes", std::move(notes)},
                    {"files", {section.name + ".json", section.name + ".csv"}}});
  }
  return list;
}

/// "2026-11-27 · 4 hosts".
std::string subtitle(std::span<const ReportSection> sections) {
  std::set<std::string> hosts;
  std::set<std::string> days;
  for (const ReportSection& section : sections) {
    days.insert(section.result.created.substr(0, 10));
    for (const RankHost& place : section.result.placement) hosts.insert(place.host);
  }
  std::string text = *days.begin();
  if (days.size() > 1) text += " to " + *days.rbegin();
  if (hosts.size() == 1) text += " · " + *hosts.begin();
  if (hosts.size() > 1) text += fmt::format(" · {} hosts", hosts.size());
  return text + " · Polyring " + sections.front().result.polyring_version;
}

}  // namespace

std::string csv_name(const ReportSection& section, const ReportTable& table) {
  return table.id.empty() ? section.name + ".csv" : fmt::format("{}-{}.csv", section.name, table.id);
}

std::string page_json(std::span<const ReportSection> sections, std::span<const ReportChart> overlaid,
                      std::span<const std::string> warnings) {
  Json findings = Json::array();
  for (const ReportFinding& finding : findings_of(sections)) findings.push_back(json_of(finding));
  Json topics = Json::array();
  for (const auto& [topic, id, title] : kTopics) {
    Json parts = parts_of(topic, sections, overlaid);
    if (!parts.empty()) topics.push_back({{"id", id}, {"title", title}, {"parts", std::move(parts)}});
  }
  Json said = Json::array();
  for (const std::string& warning : warnings) said.push_back(plain(warning));
  const Json document{{"title", title_of(sections)},
                      {"subtitle", plain(subtitle(sections))},
                      {"findings", std::move(findings)},
                      {"sources", json_of(sources_of(sections))},
                      {"warnings", std::move(said)},
                      {"topics", std::move(topics)},
                      {"environments", environments(sections)},
                      {"origins", origins(sections)}};
  return document.dump();
}

Drawing write_page(const std::filesystem::path& folder, std::span<const ReportSection> sections,
                   std::span<const ReportChart> overlaid, std::span<const std::string> warnings) {
  const std::filesystem::path content = folder / ".page.json";
  write_file(content, page_json(sections, overlaid, warnings));
  std::vector<std::string> arguments{content.string(), "--out", (folder / "index.html").string()};
  if (!overlaid.empty()) arguments.push_back("--overlay");
  for (const ReportSection& section : sections)
    arguments.push_back((folder / (section.name + ".json")).string());
  Drawing drawing = run_drawing("page.py", arguments);
  std::filesystem::remove(content);
  return drawing;
}

}  // namespace polyring
