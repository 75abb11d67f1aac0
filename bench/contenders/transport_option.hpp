// What carries our own algorithms' messages in a job: the option, and the communicator that follows from it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/cli/command_line.hpp"
#include "bench/contenders/gpu_option.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

struct TransportOptions {
  std::string transport = "auto";
  std::string interface;  // for TCP; empty: that of the default route
  GpuOptions gpu;

  /// Adds --transport and --tcp-interface.
  void add_to(Subcommand command);
};

/// Collective. The communicator of the job's ranks; says on standard error when it is not what was hoped for.
/// Keeps a reference to the world, and has its time limit as it is now. `gpu`: this rank's, where the ranks
/// are a part of the job and have theirs already. Throws as Communicator does.
std::unique_ptr<Communicator> open_communicator(const World& world, const TransportOptions& options,
                                                const std::optional<GpuDevice>& gpu = std::nullopt);

}  // namespace polyring
