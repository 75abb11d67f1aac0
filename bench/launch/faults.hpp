// What keeps a job from starting, or makes its results worthless: said before it starts, each fault in one
// sentence with what to do about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "bench/launch/ask.hpp"
#include "bench/launch/launcher.hpp"

namespace polyring {

struct Fault {
  ExitCode code = ExitCode::not_available;
  std::string sentence;
};

/// What the hosts should be like.
struct ExpectedHosts {
  std::string polyring;  // "polyring 0.1.0 (1a2b3c4)"
  Launcher launcher;
};

/// Faults of the hosts, those of several hosts together: no answer in time, unreachable, one machine twice,
/// no Polyring or another one, no MPI or another one. Empty when all is well.
std::vector<Fault> find_faults(std::span<const HostAnswer> answers, const Questions& questions,
                               const ExpectedHosts& expected);

/// How hosts differ from the commonest kind, as differences_of() has it, and in NCCL, where they have one.
std::vector<std::string> host_differences(const Inventory& hosts, std::span<const HostAnswer> answers);

/// One fault for each difference.
std::vector<Fault> faults_of(std::span<const std::string> differences);

}  // namespace polyring
