// The text of Gloo's benchmark, https://github.com/facebookincubator/gloo/blob/main/gloo/benchmark/runner.cc:
//
//   =====================================
//              ALLREDUCE_RING_CHUNKED              or "Algorithm: allreduce_ring_chunked" before 2021
//
//   Options:     processes=2, inputs=1, threads=1, verify=true
//   =====================================
//      size (B)   elements   min (us)   p50 (us)   p99 (us)   max (us)   bandwidth (GB/s)   iterations
//         16000       4000        191        261        784        784              0.055           50
//
//   =====================================                                  not before 2021
#include <algorithm>
#include <limits>

#include "base/printable.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/plain_table.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

constexpr const char* kMixed = "two tables are printed into each other; give the log of one process";

bool is_header(std::string_view line) {
  return line.find(" elements ") != std::string_view::npos && line.find(" p50 (") != std::string_view::npos &&
         line.find(" p99 (") != std::string_view::npos;
}

/// "allreduce_ring_chunked" of the title, a line of one word in capitals; empty for other lines.
std::string title_in(std::string_view line) {
  const auto parts = words(line);
  if (parts.size() == 2 && parts[0] == "Algorithm:") return std::string(parts[1]);
  if (parts.size() != 1 || parts[0].size() < 4) return "";
  const bool capitals =
      std::ranges::all_of(parts[0], [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
  return capitals ? lower(parts[0]) : "";
}

/// That of kCollectives, and the algorithm behind its name: "allreduce" and "ring_chunked".
std::optional<std::pair<std::string, std::string>> collective_of(std::string_view benchmark) {
  for (const std::string_view begin : {"cuda_", "new_"})
    if (benchmark.starts_with(begin)) benchmark.remove_prefix(begin.size());
  for (const std::string_view name : {"allreduce", "allgather", "alltoall", "reduce_scatter"}) {
    if (!benchmark.starts_with(name)) continue;
    const std::string_view rest = benchmark.substr(name.size());
    if (rest == "_v" || rest == "_local" || (!rest.empty() && rest.front() != '_')) return std::nullopt;
    return std::pair(*collective_named(name), std::string(rest.empty() ? rest : rest.substr(1)));
  }
  return std::nullopt;
}

class GlooReader {
 public:
  GlooReader(const LogText& log, ImportedLog& read) : log_(log), read_(read) {}

  void read() {
    for (const LogLine& line : log_.lines) read_line(line);
    close();
  }

 private:
  void read_line(const LogLine& line) {
    const std::string_view text = line.text;
    if (const std::string title = title_in(text); !title.empty()) {
      close();
      title_ = {line.number, title};
      options_.clear();
    } else if (text.find("processes=") != std::string_view::npos) {
      options_ = text;
    } else if (is_header(text)) {
      begin_table(line);
    } else if (text.find("VERIFY ERRORS") != std::string_view::npos && run_) {
      run_->notes.push_back(fmt::format("{}: errors from line {} on", kWrongResults, line.number));
      run_->ended = false;
    } else if (!open_) {
      if (table_.row(text)) refuse(log_, line.number, "{}", kMixed);
    } else if (text.starts_with("====")) {
      if (run_) run_->ended = true;
      open_ = false;
    } else if (says_failure(text)) {
      refuse_aborted(log_, line);
    } else if (run_) {
      read_row(line);
    }
  }

  void begin_table(const LogLine& line) {
    if (open_) refuse(log_, line.number, "{}", kMixed);
    close();
    table_.read_header(line.text);
    open_ = true;
    const auto named = collective_of(title_.text);
    if (!named) {
      read_.others.push_back(
          {line.number, title_.text.empty() ? "a table that does not say of what" : title_.text});
      return;
    }
    const bool before_2021 = !table_.has("size (B)");
    run_.emplace();
    run_->collective = named->first;
    run_->implementation = "Gloo's benchmark";
    run_->algorithm = named->second.empty() ? "gloo" : "gloo:" + printable_line(named->second, 40);
    run_->line = title_.number;
    run_->ranks = as_ranks(whole_after(options_, "processes"));
    run_->ended = before_2021;
    run_->notes = {
        "Times are medians over rank 0's calls, and not over the slowest ranks'",
        "Gloo's GB/s are 2^30 bytes, and from the mean: here they are 1e9 bytes, and from the median"};
    if (before_2021)
      run_->notes.push_back("Before 2021, Gloo printed no end mark: a log that was cut looks whole");
    if (title_.text.starts_with("cuda_") || title_.text.starts_with("new_"))
      run_->notes.push_back("Gloo calls it " + printable_line(title_.text, 60));
    if (const auto inputs = whole_after(options_, "inputs").value_or(1); inputs > 1)
      run_->notes.push_back(fmt::format("Each process reduced {} buffers of its own first", inputs));
    if (const auto threads = whole_after(options_, "threads").value_or(1); threads > 1)
      run_->notes.push_back(fmt::format("{} threads of each process ran it at the same time", threads));
    title_ = {};
  }

  void read_row(const LogLine& line) {
    const auto row = table_.row(line.text);
    if (!row) {
      if (begins_as_row(line.text)) run_->torn.push_back(line.number);
      return;
    }
    const auto elements = table_.whole(*row, "elements").value_or(0);
    const auto us = table_.number(*row, "p50 (us)");
    const auto ns = table_.number(*row, "p50 (ns)");
    if (elements == 0 || elements > std::numeric_limits<std::uint64_t>::max() / 8 || (!us && !ns)) {
      run_->torn.push_back(line.number);
      return;
    }
    const std::uint64_t bytes = table_.whole(*row, "size (B)").value_or(elements * 4);
    if (!run_->rows.empty() && elements <= elements_) refuse(log_, line.number, "{}", kMixed);
    elements_ = elements;
    run_->rows.push_back({.line = line.number,
                          .bytes = bytes,
                          .of_block = !reduces(run_->collective),
                          .dtype = bytes == 2 * elements ? "half" : "float",
                          .op = "",
                          .us = {us ? *us : *ns / 1e3},
                          .wrong = {}});
  }

  void close() {
    if (run_) read_.runs.push_back(std::move(*run_));
    run_.reset();
    table_ = {};
    open_ = false;
  }

  const LogText& log_;
  ImportedLog& read_;
  LogLine title_;  // the next table's
  std::string options_;
  PlainTable table_;
  bool open_ = false;               // rows may come
  std::optional<ImportedRun> run_;  // stays until the next, since errors come behind the table's end
  std::uint64_t elements_ = 0;      // of the last row
};

bool is_gloo(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) { return is_header(line.text); });
}

void read_gloo(const LogText& log, const ImportOptions&, ImportedLog& read) { GlooReader(log, read).read(); }

}  // namespace

const LogFormat kGloo{"Gloo's benchmark", is_gloo, true, read_gloo};

}  // namespace polyring
