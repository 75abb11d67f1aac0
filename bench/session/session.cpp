#include "bench/session/session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/session/collective.hpp"
#include "reports/csv.hpp"
#include "reports/result_text.hpp"

namespace polyring {
namespace {

using std::chrono::milliseconds;

/// What holds a lock for longer is a disk, a terminal or a pipe that takes no more.
constexpr milliseconds kLongestLockWait{120};
/// Rank 0 must have its say before a launcher hears that another rank has ended.
constexpr milliseconds kHeadStart{300};
constexpr milliseconds kSameAgain{100};

/// The rows from `first` on.
Rows from(const Rows& rows, std::size_t first) {
  const auto rest = [&](const auto& all) -> Rows {
    return std::decay_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
  };
  return std::visit(rest, rows);
}

std::size_t size_of(const Rows& rows) {
  return std::visit([](const auto& all) { return all.size(); }, rows);
}

TableStyle style() { return format() == Format::markdown ? TableStyle::markdown : TableStyle::text; }

/// Writes `from` over the rows of `to`, or behind them.
void put(Rows& to, const Rows& from, std::size_t first) {
  const auto put_all = [&](auto& rows) {
    for (const auto& row : std::get<std::decay_t<decltype(rows)>>(from)) {
      if (first == rows.size()) rows.emplace_back();
      rows[first++] = row;
    }
  };
  std::visit(put_all, to);
}

}  // namespace

Session::Session(const World& world) : world_(world), is_root_(world.rank() == 0), progress_(is_root_) {
  if (!world.is_first_of_process()) return;
  interrupts_.emplace([this](int signal) { interrupted(signal); });
  last_words_.emplace([this](const std::string& why, ExitCode code) { return failed(why, code); });
}

Session::~Session() {
  if (over_ || !journal_) return;
  progress_.clear();
  if (!journal_has_rows_) {
    journal_->remove();
  } else {
    warn("ended early; {}", where_it_is());
  }
}

void Session::open(Outline outline) {
  const std::lock_guard lock(mutex_);
  outline_ = std::move(outline);
  result_ = outline_.header;
  remaining_.emplace(outline_.weights);
  if (!outline_.output.empty() && outline_.output != kStandardOutput)
    journal_ = std::make_unique<Journal>(outline_.output, result_, outline_.planned);
  began_ = Clock::now();
  print_locked(outline_.title, print_remark);
  if (format() == Format::csv) print_locked(csv_head(result_.rows), print_result);
  if (outline_.expected) print_head(*outline_.expected);
}

void Session::on_failure(std::function<void(ExitCode)> action) {
  const std::lock_guard lock(failing_);
  fails_here_ = std::move(action);
}

void Session::step(const std::string& what) {
  if (!is_root_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  const std::size_t done = steps_++;
  // The same again, as a short training step, is not worth a line each time.
  if (!progress_.on() || (what == what_ && now - shown_ < kSameAgain)) return;
  what_ = what;
  shown_ = now;
  const std::chrono::duration<double> elapsed = now - began_;
  const auto left = remaining_->after(done, {elapsed.count()});
  step_ = fmt::format("{} ({} of {}{})", what, steps_, remaining_->steps(),
                      left ? fmt::format(", about {} left", rough_text(*left)) : "");
  progress_.show(step_);
}

void Session::show(const std::string& what) {
  if (!is_root_) return;
  const std::lock_guard lock(mutex_);
  progress_.show(fmt::format("{}: {}", step_, what));
}

void Session::keep(const World& group, const Rows& rows, std::size_t first, std::uint64_t measured) {
  record(
      group, measured, [&](Journal& journal) { journal.add(rows, first, measured); },
      [&](ResultFile& result) { put(result.rows, rows, first); });
}

void Session::keep(const World& group, const RoundChange& change, std::uint64_t measured) {
  record(
      group, measured, [&](Journal& journal) { journal.add(change, measured); },
      [&](ResultFile& result) { apply(change, result); });
}

void Session::record(const World& group, std::uint64_t measured,
                     const std::function<void(Journal&)>& in_journal,
                     const std::function<void(ResultFile&)>& in_result) {
  on_root(group, [&] {
    const std::lock_guard keeping(keeping_);
    journal_has_rows_ = true;
    append(in_journal);
    const std::lock_guard lock(mutex_);
    in_result(result_);
    measured_ = measured;
    if (!journal_broken_) in_journal_ = measured;
  });
}

void Session::add_note(const std::string& note) {
  result_.notes.push_back(note);
  append([&](Journal& journal) { journal.add_note(note); });
}

std::filesystem::path Session::journal() const {
  return journal_ ? std::filesystem::absolute(journal_->path()) : std::filesystem::path();
}

void Session::keep_last(const Rows& more, const std::string& why) {
  const std::unique_lock keeping(keeping_, kLongestLockWait);
  if (!keeping.owns_lock() || over_) return;
  append([&](Journal& journal) { journal.add_end(more, why); });
}

/// Without the lock of what is printed, as a disk may take its time. The run goes on without its journal: it
/// may still come to its end, and its rows are printed.
void Session::append(const std::function<void(Journal&)>& action) {
  if (!journal_ || journal_broken_) return;
  try {
    action(*journal_);
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    progress_.clear();
    warn("the run goes on without its journal: {}", error.what());
    journal_broken_ = true;
  }
}

void Session::remark(const std::string& text) {
  const std::lock_guard lock(mutex_);
  print_locked(text, print_remark);
}

void Session::print_rows() {
  const std::lock_guard lock(mutex_);
  print_rows_locked();
}

/// At once, also in a pipe; on a terminal the progress stays below.
void Session::print_locked(const std::string& text, void (*print)(std::string_view)) {
  progress_.clear();
  print(text);
}

void Session::print_head(Table table) {
  if (format() == Format::csv || (format() == Format::json && is_quiet())) return;
  widths_ = fit(table);
  print_locked(table.head(*widths_, style()), print_out);
}

/// Of JSON the rows are told to people, as it comes whole in the end. The table is made of the last rows that
/// are printed and the new ones: of all of them, a run of many sizes would make it again and again.
void Session::print_rows_locked() {
  const std::size_t rows = size_of(result_.rows);
  if (format() == Format::csv) {
    print_locked(csv_body(result_.rows, printed_), print_result);
  } else if (format() != Format::json || !is_quiet()) {
    const Table before = outline_.table(from(result_.rows, last_printed_));
    if (!widths_) print_head(before);
    print_locked(before.body(*widths_, lines_of_last_, style()), print_out);
    lines_of_last_ = outline_.table(from(result_.rows, printed_)).size();
    last_printed_ = printed_;
  }
  printed_ = rows;
}

void Session::finish(const std::function<std::string(const ResultFile&)>& write) {
  over_ = true;
  if (format() == Format::json && outline_.output != kStandardOutput) print_result(result_text(result_));
  if (outline_.output.empty()) return;
  try {
    remark(fmt::format("\nWritten to {}\n", write(result_)));
  } catch (const Error& error) {
    std::error_code ignored;
    if (!journal_ || !std::filesystem::exists(journal_->path(), ignored)) throw;
    throw Error(error.code(), fmt::format("{}; {}", error.what(), where_it_is()));
  }
  const std::lock_guard keeping(keeping_);
  const std::lock_guard lock(mutex_);
  if (journal_) journal_->remove();
  journal_.reset();
}

std::string Session::where_it_is() const {
  return fmt::format("{} has {} of {} measurements, and polyring report reads it", journal_->path().string(),
                     in_journal_, outline_.planned);
}

/// The rows that are not printed yet; and how far the run has come, for the end of a sentence. Empty when
/// locks are held.
std::string Session::print_what_there_is() {
  // So that the journal has what is printed, and nothing more.
  const std::unique_lock keeping(keeping_, kLongestLockWait);
  const std::unique_lock lock(mutex_, kLongestLockWait);
  if (!lock.owns_lock()) return "";
  progress_.clear();
  if (journal_ && !journal_has_rows_) journal_->remove();
  if (measured_ == 0) return " before anything was measured";
  print_rows_locked();
  const std::string after = fmt::format(" after {} of {} measurements", measured_.load(), outline_.planned);
  if (!journal_ || in_journal_ == 0) return after;
  return fmt::format("{}; {} has {}, and polyring report reads it", after, journal_->path().string(),
                     in_journal_ == measured_ ? "them" : fmt::format("{} of them", in_journal_));
}

/// In a thread of its own; the process ends behind it. Rank 0 tells the launcher the exit code, which MPICH's
/// mpiexec does not always take from a process that has ended.
void Session::interrupted(int signal) {
  if (!is_root_) return std::this_thread::sleep_for(kHeadStart);
  fails_here(static_cast<ExitCode>(InterruptHandler::exit_code(signal)));
  const std::string sentence = fmt::format(
      "polyring: {}{}\n", signal == SIGINT ? "interrupted" : "ended by SIGTERM", print_what_there_is());
  // Past the stream, whose lock another thread may hold.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  const auto code = static_cast<ExitCode>(InterruptHandler::exit_code(signal));
  const char* const why = signal == SIGINT ? "it was interrupted" : "it was ended by SIGTERM";
  world_.end(static_cast<int>(tell_early_end(why, code)));
}

void Session::fails_here(ExitCode code) {
  const std::lock_guard lock(failing_);
  if (fails_here_) fails_here_(code);
}

ExitCode Session::failed(const std::string& why, ExitCode code) {
  fails_here(code);
  if (!is_root_ || over_) return code;
  if (measured_ > 0) warn("the run ended{}", print_what_there_is());
  return tell_early_end(why, code);
}

/// Nothing where locks are held.
ExitCode Session::tell_early_end(const std::string& why, ExitCode code) {
  if (!outline_.ends_early || over_) return code;
  ResultFile so_far;
  {
    const std::unique_lock keeping(keeping_, kLongestLockWait);
    const std::unique_lock lock(mutex_, kLongestLockWait);
    if (!keeping.owns_lock() || !lock.owns_lock()) return code;
    so_far = result_;
    so_far.partial = fmt::format("{} of {} measurements", measured_.load(), outline_.planned);
  }
  try {
    const EarlyEnd end = outline_.ends_early(so_far, why, code);
    keep_last(end.more, why);
    return end.code;
  } catch (const std::exception& error) {
    warn(error.what());
    return code;
  }
}

}  // namespace polyring
