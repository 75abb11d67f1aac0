// GoogleTest under mpiexec: every rank runs the same tests at the same time. Link polyring_mpi_tests_main.
#pragma once

#include "collectives/runtime/mpi/world.hpp"

namespace polyring::testing {

/// All ranks that mpiexec has started.
MpiWorld& all_ranks();

}  // namespace polyring::testing
