// How MPI_Allreduce is called. Inside of the MPI baselines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/contenders/collective_call.hpp"
#include "collectives/runtime/mpi/control.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// What a setting is during a call, and then no longer.
struct MpiSetting {
  const MpiControl* control = nullptr;
  int during = 0;
  int otherwise = 0;
};

struct MpiCall {
  std::string algorithm;  // see CollectiveCall::algorithm()
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<MpiSetting> settings;
};

/// The controls and the communicator must outlive it.
std::unique_ptr<CollectiveCall> make_mpi_allreduce(const MpiWorld& world, MpiCall call, ElementKind kind,
                                                   ReduceOp op, Count count);

}  // namespace polyring
