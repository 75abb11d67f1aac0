#include "reports/import/nccl_runs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "reports/import/vocabulary.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

constexpr const char* kMixed =
    "two tables are printed into each other: the processes ran without MPI, so each measured alone; build "
    "nccl-tests with MPI=1, or give the log of one process";

/// The rows of one type, operation and root, whose sizes ascend; with -N they come several times.
struct Sweep {
  std::vector<std::size_t> rows;  // of the run
  std::size_t again = 0;          // which comes next in a later cycle
  int cycles = 1;
};

class NcclReader {
 public:
  explicit NcclReader(const LogText& log) : log_(log) {}

  std::vector<NcclRun> read() {
    for (const LogLine& line : log_.lines) {
      if (says_failure(line.text) && !run_.ended && !failure_) failure_ = line;
      if (line.text.starts_with('#')) {
        read_mark(line);
      } else if (!run_.table || !read_row(line)) {
        read_other(line);
      }
    }
    close();
    return std::move(runs_);
  }

 private:
  void read_mark(const LogLine& line) {
    const std::string_view text = line.text;
    if (const auto table = NcclTable::below(text, above_)) {
      begin_table(line, *table);
    } else if (text.starts_with("# nThread ")) {
      begin(line);
    } else if (text.find("-tests version ") != std::string_view::npos) {
      begin_new(line);
      read_version(line, "version");
    } else if (text.find(" Rank ") != std::string_view::npos &&
               text.find(" device ") != std::string_view::npos) {
      read_device(line);
    } else if (text.starts_with("# Collective test starting:")) {
      begin_new(line);
      const std::string name = word_after(text, "starting");
      run_.test = name.substr(0, name.find("_perf"));
    } else if (text.starts_with("# Avg bus bandwidth")) {
      if (run_.ended) refuse(log_, line.number, "{}", kMixed);
      run_.ended = true;
    } else {
      read_remark(line);
    }
    above_ = text;
    mark_ = line.number;
  }

  void read_remark(const LogLine& line) {
    const std::string_view text = line.text;
    if (text.starts_with("# Out of bounds values") && text.find("FAILED") != std::string_view::npos)
      run_.notes.push_back(
          fmt::format("{}: '{}' (line {})", kWrongResults, printable_line(text.substr(2), 80), line.number));
    if (text.starts_with("# error: "))
      run_.notes.push_back("NCCL said: " + printable_line(text.substr(9), 120));
    if (text.starts_with("# Blocking Enabled")) {
      const auto says = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
      run_.timing = says("and barrier") ? TimingMethod::osu : TimingMethod::blocking;
      if (says("and barrier") && !says("outer iteration")) run_.notes.push_back(kBarriersInTimes);
    }
    if (text.find("test concluded") == std::string_view::npos) read_command(line);
  }

  /// A command, or a heading that names the test.
  void read_command(const LogLine& line) {
    const std::string test = nccl_test_in(line.text);
    if (test.empty()) return;
    next_test_ = test;
    next_command_ = line.text.starts_with('#') ? "" : line.text;
  }

  /// What nccl-tests did not print itself, and a line of rccl-tests.
  void read_other(const LogLine& line) {
    const std::string_view text = line.text;
    if (text.starts_with("rccl-tests: Version ")) {
      read_version(line, "Version");
    } else {
      read_command(line);
    }
  }

  void start(const LogLine& line) {
    if (run_.line != 0) return;
    run_.line = line.number;
    run_.since = runs_.empty() ? 0 : previous_;
    run_.test = std::exchange(next_test_, {});
    run_.command = std::exchange(next_command_, {});
    failure_.reset();
  }

  /// A line that begins a run, unless what is there has only begun itself.
  void begin_new(const LogLine& line) {
    if (began_ || run_.table) close(line.number);
    start(line);
  }

  void begin(const LogLine& line) {
    begin_new(line);
    began_ = true;
    const auto least = whole_after(line.text, "minBytes");
    one_size_ = least && least == whole_after(line.text, "maxBytes");
    if (line.text.find("validation: 0") != std::string::npos)
      run_.notes.push_back("Its results were not checked");
    if (whole_after(line.text, "graph:").value_or(0) > 0) {
      run_.timing = TimingMethod::graph;
      run_.notes.push_back("Its calls came from a CUDA graph");
    }
  }

  void read_version(const LogLine& line, std::string_view key) {
    const bool rccl = line.text.find("rccl-tests") != std::string::npos;
    run_.version =
        fmt::format("{}-tests {}", rccl ? "rccl" : "nccl", printable_line(word_after(line.text, key), 60));
    if (const auto library = whole_after(line.text, "ccl-library"))
      run_.versions[rccl ? "RCCL" : "NCCL"] = nccl_version(*library);
  }

  void read_device(const LogLine& line) {
    const auto rank = whole_after(line.text, " Rank ");
    if (!rank || *rank > kMostRanks) return;
    const std::string group = word_after(line.text, " Group ");
    if (run_.placement.empty()) group_ = group;
    if (group != group_) {  // side by side with the first
      if (!std::exchange(other_groups_, true))
        run_.notes.push_back("Several groups of ranks ran side by side: its rows are of one");
      return;
    }
    if (!ranks_.insert(*rank).second) refuse(log_, line.number, "{}", kMixed);
    run_.placement.push_back(
        {static_cast<int>(run_.placement.size()), printable_line(word_after(line.text, " on "), 60)});
  }

  void begin_table(const LogLine& line, const NcclTable& table) {
    if (run_.table) close(line.number);
    start(line);
    if (table.has("cputime"))
      refuse(log_, line.number, "its times are the CPU's and not those of the collective; run it without -C");
    run_.table = table;
    if (!table.has("#wrong"))
      run_.notes.push_back("The log has the largest error of each row, and not how many elements are wrong");
  }

  /// Whether the line is a row, or a part of one.
  bool read_row(const LogLine& line) {
    const auto parts = words(line.text);
    auto row = run_.table->row(parts);
    if (row) {
      row->line = line.number;
    } else if (!torn_.empty()) {
      auto joined = torn_;
      joined.insert(joined.end(), parts.begin(), parts.end());
      row = run_.table->row(joined);
      if (row) row->line = torn_line_;
      if (row) torn_.clear();
    }
    if (row) {
      if (run_.ended) refuse(log_, line.number, "{}", kMixed);
      add(std::move(*row));
      mark_ = line.number;
      return true;
    }
    if (run_.ended || parts.size() < 2 || !whole_in(parts[0]) || !whole_in(parts[1])) return false;
    give_torn_up();
    torn_ = parts;
    torn_line_ = line.number;
    return true;
  }

  void add(NcclRow row) {
    Sweep& sweep = sweeps_[{row.dtype, row.op, row.root}];
    const auto bytes_of_row = [&](std::size_t i) { return run_.rows[sweep.rows[i]].bytes; };
    const auto last = [&] { return bytes_of_row(sweep.rows.size() - 1); };
    const bool first =
        sweep.cycles == 1 && (sweep.rows.empty() || row.bytes > last() || (row.bytes == 0 && last() == 0));
    if (first) {
      sweep.rows.push_back(run_.rows.size());
      run_.rows.push_back(std::move(row));
      return;
    }
    if (sweep.rows.size() == 1 && !one_size_) refuse(log_, row.line, "{}", kMixed);
    if (sweep.cycles == 1 || sweep.again == sweep.rows.size()) {
      sweep.again = 0;
      run_.cycles = std::max(run_.cycles, ++sweep.cycles);
    }
    if (bytes_of_row(sweep.again) != row.bytes) refuse(log_, row.line, "{}", kMixed);
    NcclRow& again = run_.rows[sweep.rows[sweep.again++]];
    for (std::size_t half = 0; half < again.halves.size(); ++half) {
      again.halves[half].us.push_back(row.halves[half].us.front());
      if (again.halves[half].wrong && row.halves[half].wrong)
        again.halves[half].wrong = std::max(*again.halves[half].wrong, *row.halves[half].wrong);
    }
  }

  void give_torn_up() {
    if (!torn_.empty()) run_.torn.push_back(torn_line_);
    torn_.clear();
  }

  /// Ends the run; another begins in line `next`, if there is one.
  void close(int next = 0) {
    give_torn_up();
    const bool known = began_ || run_.table;
    if (failure_ && known && !run_.ended) refuse_aborted(log_, *failure_);
    if (next != 0 && run_.table && run_.rows.empty() && !run_.ended) refuse(log_, next, "{}", kMixed);
    if (known) runs_.push_back(std::move(run_));
    previous_ = mark_;
    run_ = {};
    sweeps_.clear();
    ranks_.clear();
    other_groups_ = false;
    began_ = false;
    one_size_ = false;
  }

  const LogText& log_;
  std::vector<NcclRun> runs_;

  NcclRun run_;                     // what is read now
  bool began_ = false;              // "# nThread …" was there
  bool one_size_ = false;           // which it says
  std::optional<LogLine> failure_;  // of this run
  std::set<std::uint64_t> ranks_;   // of its devices
  std::string group_;               // of its first rank
  bool other_groups_ = false;
  std::map<std::tuple<std::string, std::string, std::string>, Sweep> sweeps_;
  std::vector<std::string_view> torn_;  // the words of a row whose rest may come later
  int torn_line_ = 0;

  std::string_view above_;  // the last line that begins with '#'
  int mark_ = 0;            // the last line that nccl-tests printed
  int previous_ = 0;        // that of the run before
  std::string next_test_;   // of a command line, for the run that it begins
  std::string next_command_;
};

}  // namespace

std::vector<NcclRun> read_nccl_runs(const LogText& log) { return NcclReader(log).read(); }

}  // namespace polyring
