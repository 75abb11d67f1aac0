// The page of a report: one HTML file that needs no other.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "reports/drawing.hpp"
#include "reports/report_content.hpp"

namespace polyring {

/// What the page says, for reports/page.py, as JSON: findings, and by topic the charts, tables and facts of
/// all results, with all numbers as text.
std::string page_json(std::span<const ReportSection> sections, std::span<const ReportChart> overlaid,
                      std::span<const std::string> warnings);

/// Writes index.html into a folder that has the results and charts already. Says why where it cannot.
Drawing write_page(const std::filesystem::path& folder, std::span<const ReportSection> sections,
                   std::span<const ReportChart> overlaid, std::span<const std::string> warnings);

/// The name of a table's CSV file, without its folder.
std::string csv_name(const ReportSection& section, const ReportTable& table);

}  // namespace polyring
