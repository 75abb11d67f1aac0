// The text of a report, in Markdown.
#pragma once

#include <span>
#include <string>

#include "reports/report_content.hpp"

namespace polyring {

/// Tables, links to the charts, and how each result came about: command, hosts, versions, inputs and their
/// sources. `overlaid`: charts of all the results together, which get a section of their own.
std::string report_text(std::span<const ReportSection> sections, std::span<const ReportChart> overlaid,
                        std::span<const std::string> warnings);

}  // namespace polyring
