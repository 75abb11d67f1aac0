// Running a subcommand on all ranks, so that a failure on one of them ends the whole job instead of hanging
// it.
#pragma once

#include <functional>

#include "bench/watchdog.hpp"
#include "collectives/mpi/world.hpp"
#include "topology/error.hpp"

namespace polyring {

/// Initialises MPI, runs `body` on every rank, and finalises; the process may end in it (MpiWorld::leave).
/// Throws an Error (mpi), on rank 0 alone, when a launcher started several processes that do not find each
/// other: it is of another MPI. A usage Error, or an Error (output), must be thrown on all ranks alike, or
/// through on_root(): rank 0 prints it and returns its exit code, the others return ok. Any other exception
/// is printed with the rank and the host, and the job is aborted with its exit code; where messages may be
/// under way, before anything is freed.
ExitCode run_collectively(const std::function<ExitCode(MpiWorld&)>& body);

/// A watchdog with the world's name for this rank and its time limit, which aborts the job.
Watchdog watch_over(const MpiWorld& world);

/// Runs `action` on rank 0 alone. When it throws a usage Error or an Error (output) there, all ranks throw
/// one; only rank 0's says why.
void on_root(const MpiWorld& world, const std::function<void()>& action);

/// on_root() for the end of a command: the others wait longer than for a message, however short a time limit
/// was chosen for these, since a file system may take its time and a result must not be lost to it.
void finish_on_root(MpiWorld& world, const std::function<void()>& action);

}  // namespace polyring
