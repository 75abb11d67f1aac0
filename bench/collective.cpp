#include "bench/collective.hpp"

#include <cstdio>
#include <exception>

namespace polyring {

ExitCode run_collectively(const std::function<ExitCode(MpiWorld&)>& body) {
  MpiWorld world;
  const auto fail = [&world](ExitCode code, const char* why) {
    fmt::print(stderr, "polyring: rank {} ({}): {}\n", world.rank(), world.host(), why);
    std::fflush(stderr);
    world.abort(static_cast<int>(code));
  };
  try {
    return body(world);
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;
    fail(error.code(), error.what());
  } catch (const std::exception& error) {
    fail(ExitCode::internal, error.what());
  }
  return ExitCode::internal;
}

Watchdog watch_over(const MpiWorld& world) {
  // MPI would have its calls from the main thread alone. But that one hangs, and the job is to die: when only
  // this process exits, MPICH's mpiexec tells nobody why.
  return Watchdog(fmt::format("rank {} ({})", world.rank(), world.host()), world.timeout(),
                  [&world](int code) { world.abort(code); });
}

void on_root(const MpiWorld& world, const std::function<void()>& action) {
  std::exception_ptr failure;
  if (world.rank() == 0) {
    try {
      action();
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      failure = std::current_exception();
    }
  }
  const bool failed = world.broadcast(failure != nullptr ? 1 : 0) != 0;
  if (failure) std::rethrow_exception(failure);
  if (failed) usage_error("rank 0 has the reason");
}

}  // namespace polyring
