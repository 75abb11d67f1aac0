#include "bench/accept/rank_deaths.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "bench/cli/output.hpp"
#include "bench/session/collective.hpp"
#include "reports/journal.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

using std::chrono::milliseconds;

/// Of a rank, behind its name.
constexpr std::string_view kEnded = "ended before its time; see why: its host, its memory, the system's log";

}  // namespace

void RankDeaths::tell_journal(const Session& session) {
  std::string own;
  if (world_.rank() == 0 && !session.journal().empty())
    own = fmt::format("{}\n{}", session.result().created, session.journal().string());
  const std::vector<std::byte> told = world_.allgather(std::as_bytes(std::span(own))).front();
  const std::string text(reinterpret_cast<const char*>(told.data()), told.size());
  created_ = text.substr(0, text.find('\n'));
  if (text.size() > created_.size()) journal_ = text.substr(created_.size() + 1);
}

void RankDeaths::has_ended(const ProcessEnd& end) {
  if (world_.rank() != 0) root_has_ended(end);
  const std::string who = fmt::format("rank {} ({})", end.rank, world_.host(end.rank));
  if (end.gave_up) end_job(world_, *end.gave_up, who + " gave up; see what it says");
  {
    const std::lock_guard lock(mutex_);
    if (is_told_) return;  // after a signal all ranks end
    dead_ = end.rank;
  }
  end_job(world_, ExitCode::below_threshold, fmt::format("{} {}", who, kEnded));
}

Rank RankDeaths::dead_within(milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  while (dead_ < 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(milliseconds(10));
  const std::lock_guard lock(mutex_);
  is_told_ = true;
  return dead_;
}

/// On the others, whose launcher may let them live. Where rank 0, which has the say, has died without a word,
/// the next process says so, and the journal, if it can be reached from here, has it for whoever reads that.
void RankDeaths::root_has_ended(const ProcessEnd& end) const {
  // A launcher that kills all ranks at once kills this one, too: then rank 0 need not have died by itself.
  constexpr milliseconds kUntilKilled{100};
  constexpr milliseconds kUntilSaid{500};
  if (end.gave_up) ::_exit(static_cast<int>(ExitCode::mpi));
  std::this_thread::sleep_for(kUntilKilled);
  if (is_next_process()) {
    try {
      if (!journal_.empty()) add_to_journal(journal_, created_, row_of_dead_rank(0, world_.host(0)));
    } catch (const Error& error) {
      warn("{}", error.what());
    }
    // Not as end_job() does: another thread may have complained already of what this has led to.
    warn("rank {} ({}): rank 0 ({}) {}", world_.rank(), world_.host(), world_.host(0), kEnded);
    world_.end(static_cast<int>(ExitCode::below_threshold));
  }
  std::this_thread::sleep_for(kUntilSaid);
  ::_exit(static_cast<int>(ExitCode::below_threshold));
}

/// Whether this is the lowest rank that is not in rank 0's process.
bool RankDeaths::is_next_process() const {
  Rank next = 1;
  while (next < world_.rank() && world_.first_of_process(next) == world_.first_of_process(0)) ++next;
  return next == world_.rank();
}

}  // namespace polyring
