// The other ranks' processes on this host: whether they live.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/runtime/bootstrap.hpp"

namespace polyring {

class Processes {
 public:
  /// Collective. Those that this process cannot see, as on other hosts or in other containers, are taken to
  /// live.
  explicit Processes(const Bootstrap& bootstrap);

  /// Looks once a second at most. Throws Error(ExitCode::mpi) that names a rank that is waited for and whose
  /// process was found to have ended at an earlier look: until then, what it has sent last may come.
  /// `awaited`: those ranks; empty: all.
  void check(const std::function<std::vector<Rank>()>& awaited = {});

 private:
  struct Process {
    Rank rank = 0;
    pid_t number = 0;
    std::uint64_t begin = 0;  // in ticks since the boot; tells it from a later one with its number
    bool ended = false;
  };

  std::vector<Process> seen_;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace polyring
