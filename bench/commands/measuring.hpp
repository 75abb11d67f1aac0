// How the commands that measure start on all ranks, and describe what they did.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "bench/contenders/transport_option.hpp"
#include "bench/measure/job.hpp"
#include "bench/session/watchdog.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "reports/result.hpp"

namespace polyring {

/// What a run has on each rank from its beginning.
struct MeasuringRun {
  const std::string& command;  // as it was typed
  Seconds timeout;
  MpiWorld& world;
  Watchdog& watchdog;

  /// A result without rows; the cluster is null where the result does not tell it.
  ResultFile header(const Cluster* cluster) const;
  /// Collective. From now on each wait has the run's time limit. Throws as open_communicator() does.
  std::unique_ptr<Communicator> connect(const TransportOptions& options) const;
  Job job(const Communicator& communicator) const { return {world, communicator.transport(), watchdog}; }
};

/// Starts MPI, and runs `body` on all ranks as run_collectively() does.
ExitCode run_measuring(const std::string& command, const std::string& timeout,
                       const std::function<ExitCode(const MeasuringRun&)>& body);

}  // namespace polyring
