// Reports: a folder with tables, charts and the results they were made from.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace polyring {

struct Report {
  std::filesystem::path folder;
  std::filesystem::path first;        // what to open: index.html, or report.md where there is no page
  std::vector<std::string> warnings;  // one sentence each: why there are no charts, or no page
};

/// Writes a folder with a page (index.html, which needs no other file), report.md, and for each result its
/// JSON, its charts (PNG and SVG) and its tables (CSV). All results are read first: when one is bad, the
/// usage Error of read_result() is thrown and nothing is written. The folder appears whole or not at all. An
/// existing folder that is not empty is left alone: .1, .2, … is appended to the name.
///
/// The charts are drawn by reports/plot.py with the Python that CMake found, or the one that the environment
/// variable POLYRING_PYTHON names. Without matplotlib the report has no charts, without Jinja2 no page, and a
/// warning says so.
///
/// `overlay`: also with charts of all results together. A usage Error says why results cannot be compared.
Report write_report(std::span<const std::filesystem::path> results, const std::filesystem::path& folder,
                    bool overlay = false);

}  // namespace polyring
