// What a report says of each result, before it becomes Markdown (report_text.hpp) or a page
// (report_page.hpp): the same tables, facts and charts are in both.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "reports/result.hpp"
#include "reports/tables.hpp"

namespace polyring {

/// What a chart or a table is about, in the order of the page.
enum class ReportTopic {
  topology,
  curves,  // bandwidth and latency over size
  contenders,
  published_runs,
  scaling,
  step,
  tuning,
  pairs,
  stragglers,
  trends,
  checks,
  conditions,
  inputs,
};

/// As plot.py has drawn it.
struct ReportChart {
  std::string name;  // of its files, without .png and .svg
  std::string kind;  // "latency", "timeline", …: see topic_of()
  std::string title;
  std::string finding;  // what it shows, in a sentence
};

struct ReportTable {
  ReportTopic topic;
  std::string id;     // in the name of its CSV file; empty: NAME.csv, with all there is, holds it
  std::string title;  // may be empty
  Table table;
  std::size_t shown = kMostShown;  // so many rows are on the page; all are in the CSV file
  bool only_on_page = false;       // too long for Markdown, or a part of another table

  static constexpr std::size_t kMostShown = 400;
};

/// One result of a report.
struct ReportSection {
  std::string name;  // of its files, without .json and .csv
  ResultFile result;
  std::string json;  // the result file as it was read
  std::vector<ReportChart> charts;
  std::string
      drawn_machine{};  // the name of its machine's picture, where that is another result's, too, and there
};

ReportTopic topic_of(const ReportChart& chart);

/// "Allreduce", "Training step", ….
std::string kind_name(const ResultFile& result);

/// "Allreduce: out", or what the result says.
std::string title_of(const ReportSection& section);

/// The title of those results that have one; "Polyring report" if none has, or if their titles differ.
std::string title_of(std::span<const ReportSection> sections);

/// Of tables_of(), but the main one.
inline constexpr std::array kTableIds{"comparison", "plans",   "contenders", "published-runs", "trends",
                                      "checks",     "reasons", "inputs",     "conditions"};

/// All tables of a result, the main one first.
std::vector<ReportTable> tables_of(const ReportSection& section);

struct ReportFact {
  std::string name;
  std::string value;
  bool code = false;  // a command line, a commit
};

/// The sources that numbers of the results have, and what each means.
std::vector<ReportFact> sources_of(std::span<const ReportSection> sections);

/// Where it ran: hosts, versions and environment. Empty of a result that ran nowhere.
std::vector<ReportFact> environment_of(const ResultFile& result);
/// How it came about: command, time, program.
std::vector<ReportFact> origin_of(const ResultFile& result);

}  // namespace polyring
