// Session: what a measuring command prints, keeps and says while it measures.
//
// Rank 0 prints each row when it is measured, appends it to a journal beside the output, and shows on a
// terminal what is being done and how long it will still take. Whatever ends the run early, what it has
// measured stays: on the screen, and in the journal, which `polyring report` reads.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/cli/progress.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/interrupt.hpp"
#include "bench/session/remaining.hpp"
#include "collectives/runtime/world.hpp"
#include "reports/journal.hpp"
#include "reports/tables.hpp"

namespace polyring {

/// Of a run that ends early.
struct EarlyEnd {
  ExitCode code{};  // with which it is to end
  Rows more{};      // that its end makes; they are in the journal, too
};

class Session {
 public:
  /// What is known before anything is measured.
  struct Outline {
    std::string output;         // the journal stands beside it; empty: none
    ResultFile header;          // its rows are empty, and of the right kind
    std::uint64_t planned = 0;  // measurements
    std::string title;          // printed above the table
    std::function<Table(const Rows&)> table;
    /// What is said and written where the run ends early, of what it has measured, beside the sentence about
    /// its journal; by the code that it would end with. In any thread.
    std::function<EarlyEnd(const ResultFile& so_far, const std::string& why, ExitCode code)> ends_early{};
    /// As wide as the table will be. None: it is not printed before its rows are.
    std::optional<Table> expected;
    std::vector<double> weights;  // of the steps that step() tells, see Remaining
  };

  /// On all ranks; keeps the reference. From now on ^C and SIGTERM have the effect of InterruptHandler.
  explicit Session(const World& world);
  /// Where the run has come to no end, says where its rows are.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// On rank 0, once. Throws as Journal does.
  void open(Outline outline);

  /// What a rank does before anything else where it is to end the job, rank 0 also for a signal; empty:
  /// nothing more.
  void on_failure(std::function<void(ExitCode)> action);

  /// The next step begins; for the progress on a terminal.
  void step(const std::string& what);
  /// More about the step, without another one.
  void show(const std::string& what);

  /// Collective over ranks that include rank 0, since a file system may take its time: `rows` are measured,
  /// and stand in the result from place `first` on; `measured` counts the measurements so far. Only rank 0's
  /// arguments count.
  void keep(const World& group, const Rows& rows, std::size_t first, std::uint64_t measured);
  /// The same of what a check of a round has changed, which must fit.
  void keep(const World& group, const RoundChange& change, std::uint64_t measured);
  /// On rank 0: prints the rows that are not printed yet.
  void print_rows();

  // On rank 0, when all is measured:
  const ResultFile& result() const { return result_; }
  /// Its absolute path; empty: there is none.
  std::filesystem::path journal() const;
  void add_note(const std::string& note);
  void set_conditions(std::vector<HostConditions> conditions) { result_.conditions = std::move(conditions); }
  /// What is beside the rows: nothing with -q.
  void remark(const std::string& text);
  /// Has `write` write the result and say where, and deletes the journal. Where there is no output, `write`
  /// is not called. What it throws is thrown with the journal's name added.
  void finish(const std::function<std::string(const ResultFile&)>& write);

 private:
  using Clock = std::chrono::steady_clock;

  void interrupted(int signal);
  void fails_here(ExitCode code);
  ExitCode failed(const std::string& why, ExitCode code);
  ExitCode tell_early_end(const std::string& why, ExitCode code);
  std::string print_what_there_is();
  void keep_last(const Rows& more, const std::string& why);
  void record(const World& group, std::uint64_t measured, const std::function<void(Journal&)>& in_journal,
              const std::function<void(ResultFile&)>& in_result);
  void append(const std::function<void(Journal&)>& action);
  void print_locked(const std::string& text, void (*print)(std::string_view));
  void print_head(Table table);
  void print_rows_locked();
  std::string where_it_is() const;

  const World& world_;
  bool is_root_;
  std::timed_mutex keeping_;  // from the journal to the result; locked before the other
  std::timed_mutex mutex_;    // of what an interrupt needs too, and of printing
  Progress progress_;
  Outline outline_;
  ResultFile result_;
  std::optional<Remaining> remaining_;
  std::unique_ptr<Journal> journal_;
  bool journal_broken_ = false;   // it could not be written: it keeps what it has, and gets no more
  std::uint64_t in_journal_ = 0;  // measurements
  std::atomic<bool> journal_has_rows_ = false;  // or soon will
  std::atomic<std::uint64_t> measured_ = 0;
  std::optional<Table::Widths> widths_;  // once the table's head is printed
  std::size_t printed_ = 0;              // rows
  std::size_t last_printed_ = 0;         // before the last time, and …
  std::size_t lines_of_last_ = 0;        // … how many lines that made
  std::size_t steps_ = 0;                // begun
  std::string what_;                     // the last that was shown, and in full
  std::string step_;
  Clock::time_point began_;
  Clock::time_point shown_;
  std::atomic<bool> over_ = false;  // the run has come to its end, or finish() has said why not
  std::mutex failing_;              // of what follows, also while it runs
  std::function<void(ExitCode)> fails_here_;
  std::optional<InterruptHandler> interrupts_;  // one in each process, as the next
  std::optional<LastWords> last_words_;
};

}  // namespace polyring
