#include "bench/session/collective.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/host_name.hpp"
#include "bench/cli/output.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/thread_world.hpp"

namespace polyring {
namespace {

constexpr std::string_view kAllIsDone = "the command itself is done, and its results are complete";

/// What is known before MPI is there. An MPI of another kind changes the launcher's variables when it is
/// initialised.
struct Start {
  std::string host = own_host_name();
  Rank rank = launched_rank();
  int ranks = launched_ranks();
  std::string launcher = launched_by();
};

[[noreturn]] void fail_alone(const Start& start) {
  const std::string library = MpiWorld::library();
  std::string remedy = fmt::format("use the mpirun of {}", library);
  if (start.launcher == "srun")
    remedy =
        fmt::format("choose a plugin for it, as in srun --mpi=pmix (srun --mpi=list has all), or {}", remedy);
  throw Error(
      ExitCode::mpi,
      fmt::format("{} has started {} processes, but each of them runs alone, since this polyring was built "
                  "with {}; {}",
                  start.launcher, start.ranks, library, remedy));
}

std::mutex last_words_mutex;
LastWords::Say last_words;

/// The process ends behind this, so that nothing is unwound. Returns the exit code.
ExitCode complain(Rank rank, const std::string& host, ExitCode code, std::string_view why) {
  if (isatty(STDERR_FILENO) == 1) std::fputs("\r\x1b[K", stderr);  // a progress that was shown
  const bool named = why.starts_with(fmt::format("rank {} on {} ", rank, host));
  const std::string sentence = named ? std::string(why) : fmt::format("rank {} ({}): {}", rank, host, why);
  warn(sentence);
  const std::lock_guard lock(last_words_mutex);
  return last_words ? std::exchange(last_words, nullptr)(sentence, code) : code;
}

/// Several threads of a process may fail at once: the first says why, and the others stop in here.
ExitCode complain_once(Rank rank, const std::string& host, ExitCode code, std::string_view why) {
  static std::timed_mutex first;
  constexpr std::chrono::seconds kMostToSay{10};
  if (!first.try_lock_for(kMostToSay)) return code;
  try {
    return complain(rank, host, code, why);
  } catch (...) {
    return code;  // no memory for a sentence
  }
}

[[noreturn]] void fail(const World& world, ExitCode code, std::string_view why) {
  world.abort(static_cast<int>(complain_once(world.rank(), world.host(), code, why)));
}

/// Says what the exception that is being handled says, and ends the job.
[[noreturn]] void fail(const World& world) {
  try {
    throw;
  } catch (const Error& error) {
    fail(world, error.code(), error.what());
  } catch (const std::exception& error) {
    fail(world, ExitCode::internal, error.what());
  } catch (...) {
    fail(world, ExitCode::internal, "an exception of an unknown kind");
  }
}

/// Whether all ranks know of this Error, and rank 0 alone says it.
bool all_know_of(const Error& error) {
  return error.code() == ExitCode::usage || error.code() == ExitCode::output ||
         dynamic_cast<const AgreedError*>(&error) != nullptr;
}

/// An Error that all ranks know of is an exit code.
ExitCode run_body(const std::function<ExitCode()>& body, const World& world) {
  try {
    return world.is_first_of_process() ? finish_output(body()) : body();
  } catch (const Error& error) {
    if (!all_know_of(error)) throw;
    if (world.rank() != 0) return ExitCode::ok;
    // Before MPI ends, which may take its time: were another rank to fail then, mpirun would end the job
    // while rank 0 is still silent.
    warn(error.what());
    return error.code();
  }
}

/// On one rank. Does not return where others cannot know of a failure.
ExitCode run_rank(const CollectiveBody& body, World& world, Watchdog& watchdog) {
  // Unwound in the meantime, what is still written to would be freed.
  world.on_failure([&world] { fail(world); });
  try {
    return run_body([&] { return body(world, watchdog); }, world);
  } catch (...) {
    fail(world);
  }
}

/// Those that run wait for the others, and can only end with the process.
[[noreturn]] void fail_to_start(Rank rank, int ranks, const char* why) {
  ::_exit(static_cast<int>(
      complain_once(rank, own_host_name(), ExitCode::not_available,
                    fmt::format("{} threads could not be started: {}; ask for fewer", ranks, why))));
}

/// What many processes have open between them, one has here. Best effort: what cannot be opened says so.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// The watchdog of this process, from before MPI is started until it has ended.
class ProcessWatchdog {
 public:
  ProcessWatchdog(const Start& start, Seconds timeout)
      : start_(start),
        limit_(std::max(timeout, kLeastLimit)),
        watchdog_(timeout, [this](const std::string& why) { end_job(why); }) {}

  Watchdog& watchdog() { return watchdog_; }

  void mpi_starts() {
    watchdog_.watch(
        {"starting MPI", limit_, "see whether all ranks have been started and their hosts reach each other"});
  }
  void mpi_runs(MpiWorld& world) {
    watchdog_.rest();
    world.set_timeout(limit_);
    running_ = &world;
  }
  void mpi_ends(MpiWorld& world) {
    running_ = nullptr;
    world.set_timeout(limit_);
    watchdog_.watch({"ending MPI", limit_, fmt::format("{}; see whether all ranks still run", kAllIsDone)});
  }

 private:
  void end_job(const std::string& why) const {
    const int code = static_cast<int>(complain_once(start_.rank, start_.host, ExitCode::timeout, why));
    // MPI would have its calls from the main thread alone. But that one hangs, and the job is to die.
    if (const MpiWorld* world = running_) world->abort(code);
    MpiWorld::end_without_mpi(code);
  }

  const Start& start_;
  Seconds limit_;
  std::atomic<const MpiWorld*> running_ = nullptr;  // null where MPI_Abort is not allowed
  Watchdog watchdog_;
};

void leave(MpiWorld& world, ExitCode code) {
  try {
    world.leave(static_cast<int>(code));
  } catch (const Error& error) {
    fail(world, error.code(), fmt::format("ending MPI: {}; {}", error.what(), kAllIsDone));
  }
}

/// What rank 0 tells the others while it works. Then it tells them its exit code.
constexpr std::int64_t kWorks = -1;

/// On a rank that waits, for at most `limit` from one word of rank 0 to the next.
void await_root(const World& world, Seconds limit) {
  std::int64_t said = kWorks;
  while (said == kWorks) said = world.broadcast(0, limit);
  if (said != 0) throw AgreedError(static_cast<ExitCode>(said), "rank 0 has the reason");
}

/// Runs `action`, and tells those who wait its exit code. They throw what all who run it throw.
void run_and_tell(const World& world, Seconds limit, const std::function<void()>& action) {
  std::exception_ptr failure;
  ExitCode code = ExitCode::ok;
  try {
    action();
  } catch (const Error& error) {
    if (!all_know_of(error)) throw;
    failure = std::current_exception();
    code = error.code();
  }
  world.broadcast(static_cast<std::int64_t>(code), limit);
  if (failure) std::rethrow_exception(failure);
}

/// Waits for what rank 0 does on another thread, and tells the others that it works. Ends the job rather than
/// throw: the work may still use what the caller has.
void wait_for(const std::future<void>& work, const World& world, Seconds others_limit, Seconds limit) {
  constexpr std::chrono::seconds kPeriod{1};
  const auto begin = std::chrono::steady_clock::now();
  while (work.wait_for(kPeriod) != std::future_status::ready) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limit.value) {
      fail(world, ExitCode::timeout,
           fmt::format("its work on files or plans, for which all ranks wait, did not finish within {}; see "
                       "whether a file system hangs, or raise --timeout",
                       to_text(limit)));
    }
    try {
      world.broadcast(kWorks, others_limit);
    } catch (const Error& error) {
      fail(world, error.code(), error.what());
    }
  }
}

}  // namespace

void end_job(const World& world, ExitCode code, const std::string& why) {
  world.end(static_cast<int>(complain_once(world.rank(), world.host(), code, why)));
}

LastWords::LastWords(Say say) {
  const std::lock_guard lock(last_words_mutex);
  last_words = std::move(say);
}

LastWords::~LastWords() {
  const std::lock_guard lock(last_words_mutex);
  last_words = nullptr;
}

ExitCode run_collectively(Seconds timeout, const CollectiveBody& body) {
  const Start start;
  ProcessWatchdog process(start, timeout);
  process.mpi_starts();
  MpiWorld world;
  process.mpi_runs(world);
  if (world.size() == 1 && start.ranks > 1) {
    if (start.rank == 0) fail_alone(start);
    return ExitCode::ok;
  }
  const ExitCode code = run_rank(body, world, process.watchdog());
  std::fflush(nullptr);  // whatever becomes of this process
  process.mpi_ends(world);
  leave(world, code);
  return code;
}

ExitCode run_on_threads(int ranks, Seconds timeout, const CollectiveBody& body) {
  const Seconds limit = std::max(timeout, kLeastLimit);
  ThreadTeam team(ranks, limit);
  std::vector<ExitCode> codes(static_cast<std::size_t>(ranks), ExitCode::internal);
  const auto run = [&](Rank rank) {
    try {
      ThreadWorld world(team, rank);
      world.set_timeout(limit);
      Watchdog watchdog(timeout, [&](const std::string& why) { fail(world, ExitCode::timeout, why); });
      codes[static_cast<std::size_t>(rank)] = run_rank(body, world, watchdog);
    } catch (const std::exception& error) {
      fail_to_start(rank, ranks, error.what());
    }
  };
  allow_many_files();
  std::vector<std::thread> threads;
  for (Rank rank = 1; rank < ranks; ++rank) {
    try {
      threads.emplace_back(run, rank);
    } catch (const std::exception& error) {
      fail_to_start(rank, ranks, error.what());
    }
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
  std::fflush(nullptr);
  return std::ranges::max(codes);
}

void on_members(const World& whole, bool member, Seconds limit,
                const std::function<void(const std::function<void()>& goes_on)>& action) {
  if (!member) return await_root(whole, limit);
  run_and_tell(whole, limit, [&] { action([&] { whole.broadcast(kWorks, limit); }); });
}

void on_root(const World& world, const std::function<void()>& action, Seconds least_limit) {
  const Seconds others_limit = std::max(world.timeout(), kLeastLimit);
  if (world.rank() != 0) return await_root(world, others_limit);
  std::future<void> work = std::async(std::launch::async, action);
  wait_for(work, world, others_limit, std::max(world.timeout(), least_limit));
  run_and_tell(world, others_limit, [&] { work.get(); });
}

}  // namespace polyring
