#include "reports/report_text.hpp"

#include <fmt/format.h>

#include "reports/markdown.hpp"
#include "reports/report_findings.hpp"

namespace polyring {
namespace {

std::string heading(const ReportSection& section) {
  const auto& partial = section.result.partial;
  return fmt::format("## {}\n\n{}", markdown_text(title_of(section)),
                     partial ? fmt::format("**Partial**: the run ended after {}.\n\n", *partial) : "");
}

std::string links(std::span<const ReportChart> charts) {
  std::string text;
  for (const ReportChart& chart : charts) {
    text += fmt::format("![{0}]({1}.png)\n\n[{2} as SVG]({1}.svg)\n\n", markdown_text(chart.finding),
                        chart.name, markdown_text(chart.title));
  }
  return text;
}

std::string charts_of(const ReportSection& section) {
  std::string text = links(section.charts);
  if (!section.drawn_machine.empty())
    text += fmt::format("Its machine is drawn above: [{0}.svg]({0}.svg)\n\n", section.drawn_machine);
  return text;
}

/// The main one is as wide as nccl-tests' is.
std::string main_table(const ReportSection& section) { return table(section.result.rows).markdown() + "\n"; }

std::string other_tables(const ReportSection& section) {
  std::string text;
  for (const ReportTable& other : tables_of(section)) {
    const bool is_main = other.id.empty() || other.title.empty();
    if (!is_main && !other.only_on_page)
      text += fmt::format("### {}\n\n{}\n", other.title, other.table.markdown());
  }
  return text;
}

std::string list(std::span<const ReportFact> facts) {
  std::string text;
  for (const ReportFact& fact : facts)
    text += fmt::format("- {}: {}\n", markdown_text(fact.name),
                        fact.code ? markdown_code(fact.value) : markdown_text(fact.value));
  return text;
}

std::string provenance(const ReportSection& section) {
  std::string text =
      "### How it was made\n\n" + list(origin_of(section.result)) + list(environment_of(section.result));
  for (const std::string& note : section.result.notes)
    text += fmt::format("- note: {}\n", markdown_text(note));
  return text + fmt::format("- data: [{0}.json]({0}.json), [{0}.csv]({0}.csv)\n\n", section.name);
}

std::string found(const ReportFinding& finding) {
  const bool is_verdict = finding.level != "none";
  return is_verdict ? fmt::format("**{}**: {}\n\n", finding.word, markdown_text(finding.text))
                    : fmt::format("{} *({})*\n\n", markdown_text(finding.text), finding.word);
}

}  // namespace

std::string report_text(std::span<const ReportSection> sections, std::span<const ReportChart> overlaid,
                        std::span<const std::string> warnings) {
  std::string text = fmt::format("# {}\n\n", markdown_text(title_of(sections)));
  for (const ReportFinding& finding : findings_of(sections)) text += found(finding);
  text += "Every number has a source.";
  for (const ReportFact& source : sources_of(sections))
    text += fmt::format(" *{}*: {}.", source.name, source.value);
  text += " Times are medians, with the 95 % confidence interval of the median.\n\n";
  for (const std::string& warning : warnings) text += fmt::format("> {}\n\n", markdown_text(warning));
  if (!overlaid.empty()) text += "## Runs side by side\n\n" + links(overlaid);
  for (const ReportSection& section : sections) {
    text += heading(section) + main_table(section) + charts_of(section) + other_tables(section) +
            provenance(section);
  }
  return text;
}

}  // namespace polyring
