#include "reports/import/import.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/printable.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/result_format.hpp"
#include "reports/result_text.hpp"

namespace polyring {
namespace {

constexpr std::array kFormats{&kNcclTests, &kOsu,           &kImb,          &kGloo,         &kMpiBench,
                              &kParam,     &kNcclTestsJson, &kRcclTestsCsv, &kRcclTestsJson};

std::string names_of_formats() {
  std::string names;
  for (const LogFormat* format : kFormats)
    if (names.find(format->name) == std::string::npos)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", format->name);
  return names;
}

bool is_result(const std::string& text) {
  return is_journal(text) ||
         text.substr(0, 1000).find(fmt::format("\"{}\"", kResultFormat)) != std::string::npos;
}

/// "a (line 1), b (line 5) and 3 more".
std::string listed(const std::vector<LogLine>& others) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(others.size(), kNamed); ++i)
    text += fmt::format("{}{} (line {})", i == 0 ? "" : ", ", printable_line(others[i].text, 60),
                        others[i].number);
  if (others.size() > kNamed) text += fmt::format(" and {} more", others.size() - kNamed);
  return text;
}

/// Adds what the log says of the runs' environments and versions: what shells exported before a run, and what
/// stands between the one before and its last row.
void add_surroundings(const LogText& log, std::vector<ImportedRun>& runs) {
  std::ranges::stable_sort(runs, {}, &ImportedRun::since);
  std::map<std::string, std::string> exported;
  auto before = log.lines.begin();
  for (ImportedRun& run : runs) {
    for (; before != log.lines.end() && before->number <= run.since; ++before)
      if (is_export(before->text)) add_settings(before->text, exported);
    run.environment = exported;
    const int last = run.rows.empty() ? run.since : run.rows.back().line;
    for (const auto* lines : {&log.lines, &log.messages}) {
      auto line = std::ranges::upper_bound(*lines, run.since, {}, &LogLine::number);
      for (; line != lines->end() && line->number <= last; ++line) {
        add_settings(line->text, run.environment);
        add_versions(line->text, run.versions);
      }
    }
    if (log.cut)
      run.notes.push_back(
          fmt::format("The log's last line, {}, has no end and is left out: the log may be cut", *log.cut));
  }
}

/// Refuses a log without a row of a collective.
[[noreturn]] void refuse_without_rows(const LogText& log, const std::string& benchmarks,
                                      const ImportedLog& read) {
  for (const LogLine& line : log.lines)
    if (says_failure(line.text)) refuse_aborted(log, line);
  if (!read.others.empty())
    usage_error(
        "'{}' has no allreduce, reduce-scatter, allgather or alltoall in it, only {}; give a log of one of "
        "these",
        log.name, listed(read.others));
  usage_error("'{}' is of {} and has no whole row in it: the run was aborted or the log cut; run it again",
              log.name, benchmarks);
}

std::vector<ResultFile> results_of(const LogText& log, const ImportOptions& options) {
  if (is_result(log.text)) return {parse_result(log.text, log.name)};
  ImportedLog read;
  std::string benchmarks;
  bool by_lines = true;
  for (const LogFormat* format : kFormats) {
    if (!format->is_it(log)) continue;
    benchmarks += fmt::format("{}{}", benchmarks.empty() ? "" : " and ", format->name);
    by_lines = by_lines && format->by_lines;
    format->read(log, options, read);
  }
  if (benchmarks.empty())
    usage_error(
        "'{}' is neither a result of polyring nor a log of {}; give the text that one of these printed",
        log.name, names_of_formats());

  if (by_lines) add_surroundings(log, read.runs);
  std::ranges::stable_sort(read.runs, {}, &ImportedRun::line);
  std::vector<LogLine> without;
  std::vector<ResultFile> results;
  for (ImportedRun& run : read.runs) {
    if (run.rows.empty()) {
      without.push_back({run.line, run.collective});
      continue;
    }
    run.algorithm = told_algorithm(run.algorithm, run.environment);
    results.push_back(result_of(log, run, options));
  }
  if (results.empty()) refuse_without_rows(log, benchmarks, read);
  for (ResultFile& result : results) {
    if (!without.empty())
      result.notes.push_back(fmt::format("Left out, since there is no whole row of it: {}", listed(without)));
    if (!read.others.empty())
      result.notes.push_back(
          fmt::format("Left out, since Polyring has no such rows: {}", listed(read.others)));
  }
  return results;
}

}  // namespace

std::vector<ResultFile> parse_log(const std::string& text, const std::string& name,
                                  const ImportOptions& options) {
  return results_of(parse_log_text(text, name), options);
}

std::vector<ResultFile> import_log(const std::filesystem::path& path, const ImportOptions& options) {
  return results_of(read_log(path), options);
}

}  // namespace polyring
