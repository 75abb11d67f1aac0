#include "reports/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "reports/csv.hpp"
#include "reports/drawing.hpp"
#include "reports/journal.hpp"
#include "reports/report_page.hpp"
#include "reports/report_text.hpp"
#include "reports/result_text.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

/// A name for the files of a result: its own without `.json` and a journal's `.part`, of characters that need
/// no quoting in a link.
std::string stem_of(fs::path path) {
  if (path.extension() == kJournalEnding) path = path.stem();
  std::string stem = path.stem().string();
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '-';
  }
  return stem;
}

/// The names that its CSV files may have, without .csv.
std::vector<std::string> table_names(const std::string& name) {
  std::vector<std::string> names{name};
  for (const char* id : kTableIds) names.push_back(fmt::format("{}-{}", name, id));
  return names;
}

/// Reads all results before anything is written; results of one name get -2, -3, … appended.
std::vector<ReportSection> read_sections(std::span<const fs::path> results, bool overlay) {
  std::vector<ReportSection> sections;
  std::set<std::string> taken;
  if (overlay) taken.insert("overlay");  // the name of the charts of all
  for (const fs::path& path : results) {
    const std::string stem = stem_of(path);
    std::string name = stem;
    const auto is_taken = [&](const std::string& file) { return taken.contains(file); };
    for (int copy = 2; std::ranges::any_of(table_names(name), is_taken); ++copy)
      name = fmt::format("{}-{}", stem, copy);
    for (const std::string& file : table_names(name)) taken.insert(file);
    std::string text = read_file(path);
    ResultFile result = parse_result(text, path.string());
    if (is_journal(text)) text = result_text(result);
    sections.push_back({name, std::move(result), std::move(text), {}});
  }
  return sections;
}

/// plot.py prints a line for each chart: the result's name, the chart's name, kind and title, and what it
/// shows, with tabs between. Charts of all results together have no result's name. A picture of the machine
/// of several has their names with commas between, and stands with the first.
void take_charts(const std::string& printed, std::vector<ReportSection>& sections,
                 std::vector<ReportChart>& overlaid) {
  std::istringstream lines(printed);
  std::string section_name;
  ReportChart chart;
  while (std::getline(lines, section_name, '\t') && std::getline(lines, chart.name, '\t') &&
         std::getline(lines, chart.kind, '\t') && std::getline(lines, chart.title, '\t') &&
         std::getline(lines, chart.finding)) {
    if (section_name.empty()) overlaid.push_back(chart);
    const std::vector<std::string> names = split(section_name, ',');
    for (ReportSection& section : sections) {
      const auto found = std::ranges::find(names, section.name);
      if (found == names.end()) continue;
      if (found == names.begin())
        section.charts.push_back(chart);
      else
        section.drawn_machine = chart.name;
    }
  }
}

Drawing draw_charts(const fs::path& folder, std::span<const ReportSection> sections, bool overlay) {
  std::vector<std::string> arguments{"--out", folder.string()};
  if (overlay) arguments.push_back("--overlay");
  for (const ReportSection& section : sections)
    arguments.push_back((folder / (section.name + ".json")).string());
  return run_drawing("plot.py", arguments);
}

void write_tables(const fs::path& folder, const ReportSection& section) {
  write_file(folder / (section.name + ".csv"), csv_head(section.result.rows) + csv_body(section.result.rows));
  for (const ReportTable& table : tables_of(section))
    if (!table.id.empty()) write_file(folder / csv_name(section, table), table.table.csv());
}

}  // namespace

Report write_report(std::span<const fs::path> results, const fs::path& folder, bool overlay) {
  if (results.empty())
    usage_error("a report needs results; name at least one file that polyring wrote with -J");
  std::vector<ReportSection> sections = read_sections(results, overlay);
  Report report;
  std::string first;
  for (const ReportSection& section : sections) {
    if (section.result.partial)
      report.warnings.push_back(
          fmt::format("{} is partial: its run ended after {}", section.name, *section.result.partial));
  }
  report.folder = create_folder(folder, [&](const fs::path& inside) {
    for (const ReportSection& section : sections) {
      write_file(inside / (section.name + ".json"), section.json);
      write_tables(inside, section);
    }
    const Drawing drawing = draw_charts(inside, sections, overlay);
    // The results have been read, so it is only to overlay them that plot.py refuses.
    if (overlay && drawing.code == ExitCode::usage) usage_error("{}", drawing.failure);
    std::vector<ReportChart> overlaid;
    if (drawing.code == ExitCode::ok) {
      take_charts(drawing.output, sections, overlaid);
    } else {
      report.warnings.push_back(fmt::format("the report has no charts: {}", drawing.failure));
    }
    const Drawing page = write_page(inside, sections, overlaid, report.warnings);
    if (page.code != ExitCode::ok) report.warnings.push_back(fmt::format("no page: {}", page.failure));
    first = page.code == ExitCode::ok ? "index.html" : "report.md";
    write_file(inside / "report.md", report_text(sections, overlaid, report.warnings));
  });
  report.first = report.folder / first;
  return report;
}

}  // namespace polyring
