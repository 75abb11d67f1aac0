// What keeps a job from starting, or makes its results worthless: said before it starts, each fault in one
// sentence with what to do about it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/launch/ask.hpp"
#include "bench/launch/launcher.hpp"
#include "topology/error.hpp"

namespace polyring {

struct Fault {
  ExitCode code = ExitCode::not_available;
  std::string sentence;
};

/// What the hosts should be like.
struct Expected {
  std::string polyring;  // "polyring 0.1.0 (1a2b3c4)"
  Launcher launcher;
  bool alike = true;  // whether differences between the hosts are faults
};

/// Faults of the hosts, those of several hosts together: no answer in time, unreachable, no Polyring or
/// another one, no MPI or another one, hosts that are not alike. Empty when all is well.
std::vector<Fault> find_faults(std::span<const HostAnswer> answers, const Questions& questions,
                               const Expected& expected);

/// What differs between the hosts: the models and numbers of GPUs, the NICs that are up and their rates, the
/// cores. One phrase for each: "node2 has 3 x P100, node0 and node1 have 4 x P100".
std::vector<std::string> differences(std::span<const HostAnswer> answers);

/// "node0", "node0 and node1", "node0, node1 and 30 more".
std::string host_names(std::span<const std::string> names);

}  // namespace polyring
