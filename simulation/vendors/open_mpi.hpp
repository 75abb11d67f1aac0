// Which algorithm Open MPI's tuned component takes for an allreduce.
#pragma once

#include <string_view>

#include "base/units.hpp"

namespace polyring {

/// By their numbers in Open MPI's coll_tuned_allreduce_algorithm.
enum class OpenMpiAllreduce {
  nonoverlapping = 2,
  recursive_doubling = 3,
  ring = 4,
  segmented_ring = 5,
  rabenseifner = 6,
};

std::string_view to_text(OpenMpiAllreduce algorithm);

inline constexpr std::string_view kOpenMpiDecision =
    "Open MPI 4.1, ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, "
    "ompi_coll_tuned_allreduce_intra_dec_fixed";

/// The fixed decision for a commutative operation (kOpenMpiDecision), for a payload of one rank.
OpenMpiAllreduce open_mpi_allreduce(int ranks, Bytes payload);

}  // namespace polyring
