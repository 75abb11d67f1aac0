#include "bench/collective.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "bench/output.hpp"

namespace polyring {
namespace {

/// What the launcher says. An MPI of another kind changes these variables when it is initialised.
struct Start {
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

/// Says what the exception that is being handled says, and ends the job.
[[noreturn]] void fail(const MpiWorld& world) {
  ExitCode code = ExitCode::internal;
  std::string why = "an exception of an unknown kind";
  try {
    throw;
  } catch (const Error& error) {
    code = error.code();
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {  // it is internal, then
  }
  if (isatty(STDERR_FILENO) == 1) std::fputs("\r\x1b[K", stderr);  // a progress that was shown
  warn("rank {} ({}): {}", world.rank(), world.host(), why);
  world.abort(static_cast<int>(code));
}

/// Whether all ranks know of such an Error, and rank 0 alone says it.
bool all_know_of(ExitCode code) { return code == ExitCode::usage || code == ExitCode::output; }

/// An Error that all ranks know of is an exit code.
ExitCode run_body(const std::function<ExitCode(MpiWorld&)>& body, MpiWorld& world) {
  try {
    return finish_output(body(world));
  } catch (const Error& error) {
    if (!all_know_of(error.code())) throw;
    if (world.rank() != 0) return ExitCode::ok;
    // Before MPI ends, which may take its time: were another rank to fail then, mpirun would end the job
    // while rank 0 is still silent.
    warn(error.what());
    return error.code();
  }
}

}  // namespace

ExitCode run_collectively(const std::function<ExitCode(MpiWorld&)>& body) {
  const Start start;
  MpiWorld world;
  if (world.size() == 1 && start.ranks > 1) {
    if (start.rank == 0) fail_alone(start);
    return ExitCode::ok;
  }
  // Unwound in the meantime, what MPI still writes to would be freed.
  world.on_failure([&world] { fail(world); });
  try {
    const ExitCode code = run_body(body, world);
    world.leave(static_cast<int>(code));
    return code;
  } catch (...) {
    fail(world);
  }
}

Watchdog watch_over(const MpiWorld& world) {
  // MPI would have its calls from the main thread alone. But that one hangs, and the job is to die: when only
  // this process exits, MPICH's mpiexec tells nobody why.
  return Watchdog(fmt::format("rank {} ({})", world.rank(), world.host()), world.timeout(),
                  [&world](int code) { world.abort(code); });
}

void on_root(const MpiWorld& world, const std::function<void()>& action) {
  std::exception_ptr failure;
  ExitCode code = ExitCode::ok;
  if (world.rank() == 0) {
    try {
      action();
    } catch (const Error& error) {
      if (!all_know_of(error.code())) throw;
      failure = std::current_exception();
      code = error.code();
    }
  }
  code = static_cast<ExitCode>(world.broadcast(static_cast<std::int64_t>(code)));
  if (failure) std::rethrow_exception(failure);
  if (code != ExitCode::ok) throw Error(code, "rank 0 has the reason");
}

void finish_on_root(MpiWorld& world, const std::function<void()>& action) {
  world.set_timeout(std::max(world.timeout(), MpiWorld::kSetUpTimeout));
  on_root(world, action);
}

}  // namespace polyring
