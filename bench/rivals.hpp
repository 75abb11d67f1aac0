// Rivals: the allreduces that one comparison times, made from their names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "collectives/allreduce.hpp"
#include "collectives/mpi/world.hpp"
#include "collectives/transport.hpp"

namespace polyring {

/// The name under which MPI_Allreduce takes part.
inline constexpr std::string_view kMpiAlgorithm = "mpi";

struct Rival {
  std::string algorithm;
  std::optional<Plan> plan;  // nothing for a vendor's call
  std::unique_ptr<Allreduce> allreduce;
};

/// Throws a usage Error for a name that is neither in the catalogue nor kMpiAlgorithm, and for a plan that
/// does not fit the number of ranks. For checking options before anything is measured.
void check_rivals(const PlanOptions& options, const MpiWorld& world);

/// The rivals for `count` elements, in the order of their names.
std::vector<Rival> make_rivals(const PlanOptions& options, const MpiWorld& world, Transport& transport,
                               ElementKind kind, ReduceOp op, Count count);

/// The plan that a schedule runs with on these ranks over MPI, unless the options say otherwise: ranks of a
/// host as the first dimension, hosts as the second.
Plan default_plan(const std::string& algorithm, const MpiWorld& world);

}  // namespace polyring
