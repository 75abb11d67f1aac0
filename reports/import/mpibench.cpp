// mpiBench's text, https://github.com/LLNL/mpiBench: pairs between tabs.
//
//   START mpiBench v1.5
//   0 : host
//   Allreduce  Bytes: 8  Iters: 100  Avg: 0.4026  Min: 0.4008  Max: 0.4043  Comm: MPI_COMM_WORLD  Ranks: 2
//   END mpiBench
#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

constexpr std::string_view kStart = "START mpiBench v";

class MpiBenchReader {
 public:
  MpiBenchReader(const LogText& log, ImportedLog& read) : log_(log), read_(read) {}

  void read() {
    for (const LogLine& line : log_.lines) read_line(line);
    close();
  }

 private:
  void read_line(const LogLine& line) {
    const std::string_view text = line.text;
    const auto parts = words(text);
    if (text.starts_with(kStart)) {
      close();
      version_ = printable_line(word_after(text, kStart), 20);
      started_ = true;
    } else if (!started_) {
      return;
    } else if (text.starts_with("END mpiBench")) {
      ended_ = true;
      close();
    } else if (says_failure(text)) {
      refuse_aborted(log_, line);
    } else if (text.find("corruption detected") != std::string_view::npos) {
      if (wrong_line_ == 0) wrong_line_ = line.number;
    } else if (parts.size() > 1 && parts[1].starts_with("Bytes")) {
      read_row(line, std::string(parts[0]));
    } else if (parts.size() == 3 && parts[1] == ":" && whole_in(parts[0])) {
      placement_.push_back({static_cast<int>(placement_.size()), printable_line(parts[2], 60)});
    }
  }

  void read_row(const LogLine& line, const std::string& name) {
    const std::string_view text = line.text;
    const auto bytes = whole_after(text, "Bytes:");
    const auto us = number_in(word_after(text, "Avg:"));
    const auto ranks = as_ranks(whole_after(text, "Ranks:"));
    const std::string comm = word_after(text, "Comm:");
    const bool whole = bytes && us && ranks && !comm.empty();
    const auto collective = comm == "MPI_COMM_WORLD" || !whole ? collective_named(name) : std::nullopt;
    if (!collective) {
      const std::string other = name + (comm.empty() || comm == "MPI_COMM_WORLD" ? "" : " of " + comm);
      if (others_.insert(other).second) read_.others.push_back({line.number, printable_line(other, 60)});
      return;
    }
    ImportedRun& run = run_of(*collective, line.number);
    if (!whole) {
      run.torn.push_back(line.number);
      return;
    }
    if (!points_.emplace(name, *bytes).second)
      refuse(log_, line.number, "two tables are printed into each other; give the log of one run");
    run.rows.push_back({.line = line.number,
                        .bytes = *bytes,
                        .of_block = !reduces(*collective),
                        .dtype = reduces(*collective) ? "double" : "int8",
                        .op = "",
                        .us = {*us},
                        .wrong = {},
                        .algorithm = "",
                        .ranks = ranks});
  }

  ImportedRun& run_of(const std::string& collective, int line) {
    for (ImportedRun& run : runs_)
      if (run.collective == collective) return run;
    ImportedRun run;
    run.collective = collective;
    run.implementation = "mpiBench " + version_;
    run.algorithm = "mpi";
    run.line = line;
    run.placement = placement_;
    run.timing = TimingMethod::osu;
    run.notes = {"Times are means over calls and ranks, and not medians",
                 "Unless mpiBench was built with NO_BARRIER, its times include a barrier after each call"};
    return runs_.emplace_back(std::move(run));
  }

  /// Ends what one START began.
  void close() {
    if (!runs_.empty()) runs_.back().ended = ended_;
    for (ImportedRun& run : runs_) {
      if (wrong_line_ != 0)
        run.notes.push_back(fmt::format("{} of some collective: see line {}", kWrongResults, wrong_line_));
      read_.runs.push_back(std::move(run));
    }
    runs_.clear();
    points_.clear();
    placement_.clear();
    others_.clear();
    wrong_line_ = 0;
    started_ = false;
    ended_ = false;
  }

  const LogText& log_;
  ImportedLog& read_;
  bool started_ = false;
  bool ended_ = false;
  std::string version_;
  std::vector<RankHost> placement_;
  std::vector<ImportedRun> runs_;
  std::set<std::pair<std::string, std::uint64_t>> points_;
  std::set<std::string> others_;
  int wrong_line_ = 0;
};

bool is_mpibench(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) { return line.text.starts_with(kStart); });
}

void read_mpibench(const LogText& log, const ImportOptions&, ImportedLog& read) {
  MpiBenchReader(log, read).read();
}

}  // namespace

const LogFormat kMpiBench{"mpiBench", is_mpibench, true, read_mpibench};

}  // namespace polyring
