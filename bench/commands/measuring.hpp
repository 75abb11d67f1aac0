// How the commands that measure start on all ranks, and describe what they did.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "bench/cli/command_line.hpp"
#include "bench/contenders/transport_option.hpp"
#include "bench/measure/job.hpp"
#include "bench/record/host_load.hpp"
#include "bench/session/session.hpp"
#include "bench/session/watchdog.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/world.hpp"
#include "reports/result.hpp"

namespace polyring {

/// What a run has on each rank from its beginning.
struct MeasuringRun {
  const std::string& command;  // as it was typed
  Seconds timeout;
  World& world;
  Watchdog& watchdog;
  const LoadWatch& load;
  const std::string&
      own_host;  // what a probe before MPI was started said of this host; empty: there was none

  /// A result without rows; the cluster is null where the result does not tell it.
  ResultFile header(const Cluster* cluster) const;
  /// Collective. From now on each wait has the run's time limit. Throws as open_communicator() does.
  std::unique_ptr<Communicator> connect(const TransportOptions& options) const;
  /// Collective, when all is measured. What else the hosts did since the run began, in the result; with a
  /// note where that makes times doubtful, or those of some of these contenders.
  void add_conditions(Session& session, std::span<const std::string> contenders) const;
  Job job(const Communicator& communicator) const { return {world, communicator.transport(), watchdog}; }
};

/// Who measures, and how long a rank waits for others.
struct MeasuringOptions {
  int threads = 1;
  int ranks_per_thread = 1;
  std::string timeout = "120";

  /// -t, -g and -T.
  void add_to(Subcommand command);
};

/// Runs `body` on all ranks: MPI's, which it starts, or threads where more than one is asked for. `own_host`
/// is for the runs. Throws as run_collectively() does, and a usage Error for threads of several processes.
ExitCode run_measuring(const std::string& command, const MeasuringOptions& options,
                       const std::string& own_host, const std::function<ExitCode(const MeasuringRun&)>& body);

}  // namespace polyring
