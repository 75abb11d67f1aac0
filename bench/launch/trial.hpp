// A trial run before the real one: hosts that answer a remote shell may still not reach each other by MPI's
// own ports, and then a job hangs without a word.
#pragma once

#include <optional>

#include "bench/launch/faults.hpp"
#include "bench/launch/launcher.hpp"

namespace polyring {

/// What starts a tiny allreduce by `polyring` on all ranks, in the place of the job's program.
std::vector<std::string> trial_program(const std::string& polyring, Seconds limit);

/// Runs that command, for `limit` at most. Nothing when it went well; else what it printed goes to standard
/// error, and the fault says what it means.
std::optional<Fault> try_out(const LaunchCommand& command, const RemoteShell& shell, Seconds limit);

}  // namespace polyring
