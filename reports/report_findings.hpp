// What a report says first: the verdict, and what was found, a sentence for each result.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "reports/report_content.hpp"

namespace polyring {

struct ReportFinding {
  std::string level;  // "pass", "fail", "doubt" or "none": no verdict
  std::string word;   // "FAIL"; where there is no verdict the source of the numbers: "measured"
  std::string text;
  std::vector<CheckRow> reasons{};  // the worst that did not pass
  std::size_t more_reasons = 0;
};

/// Verdicts first, the worst of them before all others, then one for each other result that has rows. A
/// verdict is given only where `polyring accept` gave one, and one that was interrupted has not passed. A
/// result that says of wrong results has "fail", in its rows or in its notes, whatever was fast.
std::vector<ReportFinding> findings_of(std::span<const ReportSection> sections);

}  // namespace polyring
