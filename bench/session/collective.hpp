// Running a subcommand on all ranks, so that a failure on one of them ends the whole job instead of hanging
// it.
#pragma once

#include <functional>

#include "base/error.hpp"
#include "bench/session/watchdog.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

using CollectiveBody = std::function<ExitCode(World&, Watchdog&)>;

/// Initialises MPI, runs `body` on every rank, and finalises; the process may end in it (MpiWorld::leave).
/// The watchdog lives as long and has the same time limit; where that is short, starting and ending MPI and
/// the world's calls have kLeastLimit.
/// Throws an Error (mpi), on rank 0 alone, when a launcher started several processes that do not find each
/// other: it is of another MPI. A usage Error, or an Error (output), must be thrown on all ranks, as an
/// AgreedError is, or through on_root(): rank 0 prints it and returns its exit code, the others return ok.
/// Any other exception is printed with the rank and the host, and the job is aborted with its exit code;
/// where messages may be under way, before anything is freed.
ExitCode run_collectively(Seconds timeout, const CollectiveBody& body);

/// The same on ranks that are threads of this process, without MPI; each has a watchdog of its own. Returns
/// the largest of the ranks' exit codes.
ExitCode run_on_threads(int ranks, Seconds timeout, const CollectiveBody& body);

/// While one lives, what this process says behind the sentence of a failure that ends the job. Nothing is
/// unwound then, so that destructors say nothing. `say` may run in any thread, and must not wait for long; it
/// is given the sentence and the exit code, and returns the code with which the job is to end. One at a time.
class LastWords {
 public:
  using Say = std::function<ExitCode(const std::string& why, ExitCode code)>;
  explicit LastWords(Say say);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
};

/// Ends the job for a reason that this rank alone knows: says it, and the last words. From any thread, and
/// without MPI_Abort: Open MPI 4's mpirun hangs in it where a rank is gone and --enable-recovery lets the
/// others live.
[[noreturn]] void end_job(const World& world, ExitCode code, const std::string& why);

/// What happens once may take some seconds where a machine is busy, however short the limit for messages is.
inline constexpr Seconds kLeastLimit{6};

/// Runs `action`, which calls no MPI, on rank 0 alone, in another thread. When it throws a usage Error, an
/// Error (output) or an AgreedError there, all ranks throw one; only rank 0's says why. While it works, rank
/// 0 tells the others so: they give up when nothing comes from it for as long as for any other message, but
/// kLeastLimit at least. Rank 0 ends the job when the action has taken as long, but `least_limit` at least.
void on_root(const World& world, const std::function<void()>& action,
             Seconds least_limit = World::kSetUpTimeout);

/// Collective over `whole`. Runs `action` on the members, which include rank 0, while the others wait, for at
/// most `limit` from one sign of life to the next. The action gives one where it calls what it is given: all
/// members must call it equally often. An Error that all members throw, as run_collectively() has it, is then
/// thrown on all ranks of `whole`.
void on_members(const World& whole, bool member, Seconds limit,
                const std::function<void(const std::function<void()>& goes_on)>& action);

}  // namespace polyring
