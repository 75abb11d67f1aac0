// The Intel MPI Benchmarks' text, https://github.com/intel/mpi-benchmarks/blob/master/src_c/IMB_output.c:
//
//   #    Intel(R) MPI Benchmarks 2021.11, MPI-1 part
//   # imb/IMB-MPI1 Allreduce -npmin 2                     the calling sequence
//   # MPI_Datatype for reductions    :   MPI_FLOAT
//   # Benchmarking Allreduce
//   # #processes = 2
//          #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
//               4           50         0.21         0.30         0.26
//   # All processes entering MPI_Finalize
//
// A benchmark has a table for each number of processes.
#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "reports/import/log_format.hpp"
#include "reports/import/plain_table.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

constexpr const char* kMixed = "two tables are printed into each other; give the log of one run";

/// "2021.11, MPI-1 part" of a title; empty for other lines.
std::string_view title_of(std::string_view line) {
  if (!line.starts_with("#  ") || line.find("Intel") == std::string_view::npos) return {};
  for (const std::string_view name : {"MPI Benchmarks ", "MPI Benchmark Suite V"})  // the latter until 3.2
    if (const std::size_t at = line.find(name); at != std::string_view::npos)
      return line.substr(at + name.size());
  return {};
}

/// Whether calls follow each other without a barrier: until 2016, and where -sync says so.
bool without_barrier(std::uint64_t year, std::string_view command) {
  const std::string sync = word_after(command, " -sync ");
  if (sync.empty()) return year < 2017;
  return sync == "0" || sync == "off" || sync == "no" || sync == "disable";
}

class ImbReader {
 public:
  ImbReader(const LogText& log, ImportedLog& read) : log_(log), read_(read) {}

  void read() {
    for (const LogLine& line : log_.lines) read_line(line);
    close();
  }

 private:
  void read_line(const LogLine& line) {
    const std::string_view text = line.text;
    if (const std::string_view title = title_of(text); !title.empty()) {
      close();
      version_ = printable_line(title.substr(0, title.find(',')), 20);
      on_gpus_ = title.find("(GPU)") != std::string_view::npos;
      command_.clear();
      reduced_type_ = "float";
      started_ = true;
    } else if (!started_) {
      return;
    } else if (text.starts_with("# Benchmarking ")) {
      begin(line, word_after(text, "Benchmarking"));
    } else if (text.starts_with("# #processes")) {
      ranks_ = as_ranks(whole_after(text, "#processes"));
    } else if (text.starts_with("# MPI_Datatype for reductions")) {
      reduced_type_ = type_named(word_after(text, "reductions"));
    } else if (text.starts_with("# ") && text.find("IMB-") != std::string_view::npos) {
      command_ = text.substr(2);
    } else if (text.find("All processes entering MPI_Finalize") != std::string_view::npos) {
      ended_ = true;
      close();
    } else if (text.find("#bytes") != std::string_view::npos &&
               text.find("t_avg[usec]") != std::string_view::npos) {
      begin_table(line);
    } else if (says_failure(text)) {
      refuse_aborted(log_, line);
    } else if (run_) {
      read_row(line);
    }
  }

  void begin(const LogLine& line, const std::string& name) {
    open_ = false;
    ranks_.reset();
    if (run_ && name == name_) return;
    finish_run();
    name_ = name;
    const auto collective = collective_named(name);
    if (!collective) {
      if (others_.insert(name).second) read_.others.push_back({line.number, name});
      return;
    }
    const std::uint64_t year = whole_after(version_, "").value_or(0);
    run_.emplace();
    run_->collective = *collective;
    run_->implementation = "IMB " + version_;
    run_->algorithm = "mpi";
    run_->line = line.number;
    run_->command = command_;
    run_->timing = without_barrier(year, command_) ? TimingMethod::back_to_back : TimingMethod::osu;
    run_->notes = {"Times are t_avg: means over calls and ranks, and not medians"};
    if (on_gpus_) run_->notes.push_back("Buffers may be in device memory: the GPU part of IMB");
    of_block_ = !reduces(*collective) || (*collective == "reduce-scatter" && year >= 2019);
    if (*collective == "reduce-scatter" && of_block_)
      run_->notes.push_back("From 2019 on its sizes are those of a block, except in IMB's legacy build in C");
  }

  void begin_table(const LogLine& line) {
    if (open_) refuse(log_, line.number, "{}", kMixed);
    open_ = true;
    table_ = {};
    for (const std::string_view word : words(line.text)) table_.names.emplace_back(word);
    sizes_.clear();
  }

  void read_row(const LogLine& line) {
    const auto row = table_.row(line.text);
    const auto average = find_column(table_.names, "t_avg[usec]");
    const auto us = row && average ? number_in((*row)[*average]) : std::nullopt;
    if (!us) {
      if (open_ && begins_as_row(line.text)) run_->torn.push_back(line.number);
      return;
    }
    const std::uint64_t bytes = *whole_in((*row)[0]);
    // Numbers of ranks may stand between tables, but they have no point.
    const bool between = !open_ && (*row)[*average].find('.') != std::string_view::npos;
    if (between || (open_ && !sizes_.insert(bytes).second)) refuse(log_, line.number, "{}", kMixed);
    if (!open_) return;
    const auto defects = table_.number(*row, "defects");
    std::optional<std::uint64_t> wrong;  // 1: at least so many
    if (defects) wrong = *defects == 0 ? 0 : 1;
    if (wrong.value_or(0) > 0)
      run_->notes.push_back(fmt::format("{}: defects in line {}", kWrongResults, line.number));
    const bool reducing = reduces(run_->collective);
    run_->rows.push_back({.line = line.number,
                          .bytes = bytes,
                          .of_block = of_block_,
                          .dtype = reducing ? reduced_type_ : "int8",
                          .op = "",
                          .us = {*us},
                          .wrong = wrong,
                          .algorithm = "",
                          .ranks = ranks_});
  }

  void finish_run() {
    if (run_) read_.runs.push_back(std::move(*run_));
    run_.reset();
  }

  /// Ends what one title began.
  void close() {
    if (run_) run_->ended = ended_;
    finish_run();
    table_ = {};
    open_ = false;
    ended_ = false;
    started_ = false;
  }

  const LogText& log_;
  ImportedLog& read_;
  bool started_ = false;
  bool ended_ = false;
  std::string version_;  // "2021.11", "2019 Update 6"
  bool on_gpus_ = false;
  std::string command_;
  std::string reduced_type_;
  std::optional<ImportedRun> run_;  // nothing within another benchmark
  std::string name_;                // of the benchmark
  bool of_block_ = false;           // its sizes are
  std::optional<int> ranks_;        // of the table
  PlainTable table_;
  bool open_ = false;              // rows may come
  std::set<std::uint64_t> sizes_;  // of the table
  std::set<std::string> others_;
};

bool is_imb(const LogText& log) {
  return std::ranges::any_of(log.lines, [](const LogLine& line) { return !title_of(line.text).empty(); });
}

void read_imb(const LogText& log, const ImportOptions&, ImportedLog& read) { ImbReader(log, read).read(); }

}  // namespace

const LogFormat kImb{"Intel MPI Benchmarks", is_imb, true, read_imb};

}  // namespace polyring
