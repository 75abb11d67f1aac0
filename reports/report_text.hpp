// The text of a report, in Markdown.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

struct ReportChart {
  std::string name;  // of its files, without .png and .svg
  std::string title;
};

/// One result of a report.
struct ReportSection {
  std::string name;  // of its files, without .json and .csv
  ResultFile result;
  std::string json;  // the result file as it was read
  std::vector<ReportChart> charts;
};

/// Tables, links to the charts, and how each result came about: command, hosts, versions, inputs and their
/// sources. `overlaid`: charts of all the results together, which get a section of their own.
std::string report_text(std::span<const ReportSection> sections, std::span<const ReportChart> overlaid,
                        std::span<const std::string> warnings);

}  // namespace polyring
