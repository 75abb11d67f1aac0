// How calls are timed, as options.
#pragma once

#include <string>

#include "bench/cli/command_line.hpp"
#include "reports/result.hpp"

namespace polyring {

struct TimingOptions {
  std::string method{to_text(TimingMethod::isolated)};
  int blocking = 0;  // nccl-tests' -z
  int graphs = 0;    // launches of a block's calls as a CUDA graph; 0: they are called one by one

  /// --timing, -z and -G.
  void add_to(Subcommand command);
  /// For before MPI is started: throws a usage Error for two ways of timing, and for graphs of calls that are
  /// not on GPUs.
  TimingMethod resolve(bool on_gpu) const;
};

}  // namespace polyring
