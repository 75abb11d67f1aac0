#include "bench/rivals.hpp"

#include "collectives/baselines/mpi.hpp"
#include "collectives/catalogue.hpp"
#include "collectives/executor.hpp"

namespace polyring {
namespace {

/// Large enough that a message's cost does not count, small enough to stay in a core's cache; see
/// docs/performance.md.
constexpr Bytes kDefaultChunk{1 << 20};

Plan plan_for(const PlanOptions& options, const std::string& algorithm, const MpiWorld& world) {
  Plan plan = with_wishes(default_plan(algorithm, world), options.wishes(algorithm));
  check_plan(plan, world.size());
  return plan;
}

}  // namespace

Plan default_plan(const std::string& algorithm, const MpiWorld& world) {
  Plan plan{algorithm, {world.size()}, {}, 1, kDefaultChunk};
  const int in_host = world.ranks_per_node();
  if (in_host > 1 && world.nodes() > 1) plan.dims = {in_host, world.nodes()};
  return plan;
}

void check_rivals(const PlanOptions& options, const MpiWorld& world) {
  for (const std::string& algorithm : options.algorithms) {
    if (algorithm != kMpiAlgorithm) plan_for(options, algorithm, world);
  }
}

std::vector<Rival> make_rivals(const PlanOptions& options, const MpiWorld& world, Transport& transport,
                               ElementKind kind, ReduceOp op, Count count) {
  std::vector<Rival> rivals;
  for (const std::string& algorithm : options.algorithms) {
    if (algorithm == kMpiAlgorithm) {
      rivals.push_back({algorithm, std::nullopt, make_mpi_allreduce(world, kind, op, count)});
      continue;
    }
    Plan plan = plan_for(options, algorithm, world);
    Schedule schedule = make_schedule(plan, world.size(), count, size_of(kind));
    auto executor = std::make_unique<Executor>(std::move(schedule), kind, op, transport,
                                               ExecutorOptions{kDefaultWindow, "polyring over MPI"});
    rivals.push_back({algorithm, std::move(plan), std::move(executor)});
  }
  return rivals;
}

}  // namespace polyring
