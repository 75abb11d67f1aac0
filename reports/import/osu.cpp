// The OSU Micro-Benchmarks' text, http://mvapich.cse.ohio-state.edu/benchmarks:
//
//   # OSU MPI-CUDA Allreduce Latency Test v5.7
//   # Datatype: MPI_FLOAT.                                             from 7.1 on, one table for each type
//   # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
//   4                      34.31             33.27             35.07        1000
//
// -f adds columns, and so do -c, -z and -D. Nothing says where a table ends, or how many ranks there were.
#include <algorithm>

#include "base/printable.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/plain_table.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

constexpr const char* kMixed = "two tables are printed into each other; give the log of one run";

/// What a title says.
struct OsuTitle {
  std::string all;    // "MPI-CUDA Allreduce Latency Test v5.7"
  std::string layer;  // "MPI", "MPI-CUDA", "NCCL-CUDA"
  std::string test;   // "Allreduce"
  std::string version;
};

/// "# OSU MPI-CUDA Allreduce Latency Test v5.7"; nothing of other lines.
std::optional<OsuTitle> title_of(std::string_view line) {
  constexpr std::string_view kBegin = "# OSU ";
  if (!line.starts_with(kBegin)) return std::nullopt;
  const auto parts = words(line.substr(kBegin.size()));
  if (parts.size() < 3) return std::nullopt;
  OsuTitle title{.all = printable_line(line.substr(kBegin.size()), 60),
                 .layer = std::string(parts[0]),
                 .test = "",
                 .version = ""};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "MANAGED") {
      title.layer += " managed";
    } else if (parts[i].starts_with('v') && whole_in(parts[i].substr(1, 1))) {
      title.version = printable_line(parts[i].substr(1), 20);
    } else if (parts[i] != "Latency" && parts[i] != "Test") {
      title.test += fmt::format("{}{}", title.test.empty() ? "" : " ", parts[i]);
    }
  }
  return title;
}

class OsuReader {
 public:
  OsuReader(const LogText& log, ImportedLog& read) : log_(log), read_(read) {}

  void read() {
    for (const LogLine& line : log_.lines) {
      if (const auto title = title_of(line.text)) {
        begin(line, *title);
      } else if (run_ && says_failure(line.text)) {
        refuse_aborted(log_, line);
      } else if (line.text.find("osu_") != std::string::npos) {
        command_ = line.text;
      } else if (run_) {
        read_line(line);
      }
    }
    close();
  }

 private:
  void begin(const LogLine& line, const OsuTitle& title) {
    const int since = last_;
    close();
    last_ = line.number;
    const auto collective = collective_named(title.test);
    if (!collective) {
      read_.others.push_back({line.number, title.all});
      return;
    }
    run_.emplace();
    run_->collective = *collective;
    run_->implementation = title.version.empty() ? "OSU" : "OSU " + title.version;
    run_->algorithm = lower(title.layer.substr(0, title.layer.find('-')));
    run_->line = line.number;
    run_->since = since;
    run_->timing = TimingMethod::osu;
    run_->command = std::exchange(command_, {});
    run_->ranks = ranks_in_command(run_->command);
    run_->notes = {"Times are means over calls and ranks, and not medians",
                   "OSU's output has no end mark: a log that was cut looks whole"};
    if (run_->ranks)
      run_->notes.push_back(fmt::format("The number of ranks is that of the command line: {}", *run_->ranks));
    if (title.layer.find('-') != std::string::npos)
      run_->notes.push_back(fmt::format("Buffers are in device memory: {}", printable_line(title.layer, 40)));
    dtype_ = reduces(*collective) ? "float" : "int8";
  }

  void read_line(const LogLine& line) {
    const std::string_view text = line.text;
    if (text.starts_with("# Datatype:")) {
      dtype_ = type_named(word_after(text, "Datatype"));
      table_ = {};
    } else if (text.starts_with("# Size")) {
      if (table_.open()) refuse(log_, line.number, "{}", kMixed);
      table_.read_header(text.substr(2));
      begins_ = run_->rows.size();
    } else if (table_.open()) {
      read_row(line);
    } else if (const auto parts = words(text);
               parts.size() > 1 && whole_in(parts[0]) && number_in(parts[1])) {
      refuse(log_, line.number, "a row stands above its table's names: {}", kMixed);
    }
  }

  void read_row(const LogLine& line) {
    const auto row = table_.row(line.text);
    auto us = row ? table_.number(*row, "Avg Latency(us)") : std::nullopt;
    if (row && !us) us = table_.number(*row, "Latency (us)");  // of old versions
    if (!us) {
      if (begins_as_row(line.text)) run_->torn.push_back(line.number);
      return;
    }
    const std::uint64_t bytes = *whole_in((*row)[0]);
    if (run_->rows.size() > begins_ && bytes <= run_->rows.back().bytes)
      refuse(log_, line.number, "the sizes of the table begin anew: {}", kMixed);
    const auto validation = find_column(table_.names, "Validation");
    const bool passed = validation && (*row)[*validation] == "Pass";
    if (validation && !passed)
      run_->notes.push_back(fmt::format("{}: the validation of line {} failed", kWrongResults, line.number));
    std::optional<std::uint64_t> wrong;  // 1: at least so many
    if (validation) wrong = passed ? 0 : 1;
    run_->rows.push_back({.line = line.number,
                          .bytes = bytes,
                          .of_block = !reduces(run_->collective),
                          .dtype = dtype_,
                          .op = "",
                          .us = {*us},
                          .wrong = wrong});
    last_ = line.number;
  }

  void close() {
    if (run_) read_.runs.push_back(std::move(*run_));
    run_.reset();
    table_ = {};
  }

  const LogText& log_;
  ImportedLog& read_;
  std::optional<ImportedRun> run_;  // nothing within another test
  std::string command_;             // for the next run
  std::string dtype_;
  PlainTable table_;
  std::size_t begins_ = 0;  // the table's first row in the run
  int last_ = 0;            // the last line of the run or test before
};

bool is_osu(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) { return title_of(line.text).has_value(); });
}

void read_osu(const LogText& log, const ImportOptions&, ImportedLog& read) { OsuReader(log, read).read(); }

}  // namespace

const LogFormat kOsu{"OSU", is_osu, true, read_osu};

}  // namespace polyring
