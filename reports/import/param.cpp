// The text of PARAM's comms.py, https://github.com/facebookresearch/param/blob/main/train/comms/pt/comms.py:
//
//    backend: nccl nw-stack: pytorch-dist …
//   [Rank   0] allSizes: [ … ] element_size: 4 local_rank: 0, num_pg 1, groupSize 8
//   COMMS-RES            total-size (B)  nElementsPerRank  Time(us):p50  p75  p95  Min  Max  AlgBW(GB/s) …
//   COMMS-RES-all_reduce-float32  1048576  262144  50.1  50.9  51.5  49.0  52.0  20.930  36.627  0.0
//
// Until 2026 its columns were called "size (B)" and "Latency(us):p50"; until 2023 rows did not say of what
// they are. Nothing says where the table ends.
#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "reports/import/bandwidths.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/plain_table.hpp"
#include "reports/import/vocabulary.hpp"

namespace polyring {
namespace {

constexpr std::string_view kMark = "COMMS-RES";

bool is_header(std::string_view line) {
  return line.find(kMark) != std::string_view::npos && line.find("size (B)") != std::string_view::npos &&
         line.find("nElementsPerRank") != std::string_view::npos &&
         line.find("(us):p50") != std::string_view::npos;
}

/// Without what says how PyTorch was called: "all_gather_base", "all_to_all_single".
std::optional<std::string> collective_of(std::string_view name) {
  for (const std::string_view end : {"_base", "_single"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  return collective_named(name);
}

class ParamReader {
 public:
  ParamReader(const LogText& log, ImportedLog& read) : log_(log), read_(read) {}

  void read() {
    for (const LogLine& line : log_.lines) read_line(line);
    close();
  }

 private:
  /// The rows of one collective below one header.
  struct Run {
    ImportedRun imported;
    std::vector<Bandwidths> bandwidths;
  };

  void read_line(const LogLine& line) {
    const std::string_view text = line.text;
    for (const std::string_view key : {"'world_size':", "groupSize "})
      if (const auto ranks = as_ranks(whole_after(text, key))) ranks_ = ranks;
    if (const std::string backend = word_after(text, " backend:"); !backend.empty()) backend_ = backend;
    const std::size_t mark = text.find(kMark);
    if (is_header(text)) {
      begin_table(text.substr(mark + kMark.size()));
    } else if (mark != std::string_view::npos && table_.open()) {
      read_row(line, text.substr(mark + kMark.size()));
    } else if (says_failure(text) && table_.open()) {
      refuse_aborted(log_, line);
    }
  }

  void begin_table(std::string_view columns) {
    close();
    for (const std::string_view word : words(columns)) {
      if (word == "(B)") continue;
      table_.names.emplace_back(word);
    }
  }

  /// A row behind its mark: "-all_reduce-float32  1048576 …", where a tag may follow the type.
  void read_row(const LogLine& line, std::string_view text) {
    const std::size_t blank = std::min(text.find_first_of(" \t"), text.size());
    const auto parts = split(text.substr(0, blank), '-');
    if (parts.size() < 3) {
      add_other(line.number, "a table that does not say of what");
      return;
    }
    const auto collective = collective_of(parts[1]);
    if (!collective) return add_other(line.number, parts[1]);
    Run& run = run_of(*collective, line.number);
    const auto row = table_.row(text.substr(blank));
    const auto algbw = find_column(table_.names, "AlgBW(GB/s)");
    const auto busbw = find_column(table_.names, "BusBW(GB/s)");
    const auto time =
        find_column(table_.names, table_.has("Time(us):p50") ? "Time(us):p50" : "Latency(us):p50");
    if (!row || !algbw || !busbw || !time) {
      run.imported.torn.push_back(line.number);
      return;
    }
    const std::uint64_t bytes = *whole_in((*row)[0]);
    const double us = *number_in((*row)[*time]);
    if (contradicts(static_cast<double>(bytes), us, *number_in((*row)[*algbw]))) {
      run.imported.torn.push_back(line.number);
      return;
    }
    const std::string dtype = type_named(parts[2]);
    if (!points_.emplace(parts[1], dtype, bytes).second)
      refuse(log_, line.number, "two tables are printed into each other; give the log of one process");
    run.bandwidths.push_back({std::string((*row)[*algbw]), std::string((*row)[*busbw])});
    run.imported.rows.push_back(
        {.line = line.number, .bytes = bytes, .dtype = dtype, .op = "", .us = {us}, .wrong = {}});
  }

  void add_other(int line, const std::string& name) {
    if (others_.insert(name).second) read_.others.push_back({line, name});
  }

  Run& run_of(const std::string& collective, int line) {
    for (Run& run : runs_)
      if (run.imported.collective == collective) return run;
    Run& run = runs_.emplace_back();
    run.imported.collective = collective;
    run.imported.implementation = "PARAM";
    const bool known = backend_ == "nccl" || backend_ == "gloo" || backend_ == "mpi";
    run.imported.algorithm = known ? backend_ : "pytorch";
    run.imported.line = line;
    run.imported.ranks = ranks_;
    run.imported.notes = {"Times are medians over ranks of their means over calls",
                          "PARAM's output has no end mark: a log that was cut looks whole"};
    return run;
  }

  /// Ends what one header began.
  void close() {
    for (Run& run : runs_) {
      if (!run.imported.ranks) {
        run.imported.ranks = ranks_by_busbw(run.bandwidths, run.imported.collective);
        if (run.imported.ranks)
          run.imported.notes.push_back(fmt::format(
              "The log does not say how many ranks; busbw / algbw does: {}", *run.imported.ranks));
      }
      read_.runs.push_back(std::move(run.imported));
    }
    runs_.clear();
    points_.clear();
    others_.clear();
    table_ = {};
  }

  const LogText& log_;
  ImportedLog& read_;
  PlainTable table_;
  std::vector<Run> runs_;  // of this header
  std::set<std::tuple<std::string, std::string, std::uint64_t>> points_;
  std::set<std::string> others_;
  std::optional<int> ranks_;
  std::string backend_;
};

bool is_param(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) { return is_header(line.text); });
}

void read_param(const LogText& log, const ImportOptions&, ImportedLog& read) {
  ParamReader(log, read).read();
}

}  // namespace

const LogFormat kParam{"PARAM", is_param, true, read_param};

}  // namespace polyring
