#include "reports/report.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/csv.hpp"
#include "reports/drawing.hpp"
#include "reports/journal.hpp"
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

/// Reads all results before anything is written; results of one name get -2, -3, … appended.
std::vector<ReportSection> read_sections(std::span<const fs::path> results) {
  std::vector<ReportSection> sections;
  std::set<std::string> taken;
  for (const fs::path& path : results) {
    const std::string stem = stem_of(path);
    std::string name = stem;
    for (int copy = 2; !taken.insert(name).second; ++copy) name = fmt::format("{}-{}", stem, copy);
    std::string text = read_file(path);
    ResultFile result = parse_result(text, path.string());
    if (is_journal(text)) text = result_text(result);
    sections.push_back({name, std::move(result), std::move(text), {}});
  }
  return sections;
}

/// plot.py prints a line for each chart: the result's name, the chart's name and its title, with tabs
/// between.
void take_charts(const std::string& printed, std::vector<ReportSection>& sections) {
  std::istringstream lines(printed);
  std::string section_name;
  ReportChart chart;
  while (std::getline(lines, section_name, '\t') && std::getline(lines, chart.name, '\t') &&
         std::getline(lines, chart.title)) {
    for (ReportSection& section : sections) {
      if (section.name == section_name) section.charts.push_back(chart);
    }
  }
}

/// Returns why there are no charts, or nothing when there are.
std::string draw_charts(const fs::path& folder, std::vector<ReportSection>& sections) {
  std::vector<std::string> arguments{"--out", folder.string()};
  for (const ReportSection& section : sections)
    arguments.push_back((folder / (section.name + ".json")).string());
  const Drawing drawing = run_drawing("plot.py", arguments);
  if (drawing.code != ExitCode::ok) return fmt::format("the report has no charts: {}", drawing.failure);
  take_charts(drawing.output, sections);
  return "";
}

}  // namespace

Report write_report(std::span<const fs::path> results, const fs::path& folder) {
  if (results.empty())
    usage_error("a report needs results; name at least one file that polyring wrote with -J");
  std::vector<ReportSection> sections = read_sections(results);
  Report report;
  for (const ReportSection& section : sections) {
    if (section.result.partial)
      report.warnings.push_back(
          fmt::format("{} is partial: its run ended after {}", section.name, *section.result.partial));
  }
  report.folder = create_folder(folder, [&](const fs::path& inside) {
    for (const ReportSection& section : sections) {
      write_file(inside / (section.name + ".json"), section.json);
      write_file(inside / (section.name + ".csv"),
                 csv_head(section.result.rows) + csv_body(section.result.rows));
    }
    const std::string warning = draw_charts(inside, sections);
    if (!warning.empty()) report.warnings.push_back(warning);
    write_file(inside / "report.md", report_text(sections, report.warnings));
  });
  return report;
}

}  // namespace polyring
