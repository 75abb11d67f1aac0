// Run under mpirun with any number of ranks: the plan that polyring plan shows for a machine, the one that
// polyring scale predicts with, and the one that polyring allreduce --plan-for runs are the same.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/error.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/predict/scaling.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "simulation/price_planner.hpp"
#include "tests/mpi_tests.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

constexpr ElementKind kKind = ElementKind::float32;
constexpr Count kCounts[] = {256, 2048, 65'536, 1'000'003, 25'557'032};
const std::string kAlgorithm(kTunedAlgorithm);

/// Nothing where hosts would be partly filled.
std::optional<Cluster> machine_of(std::string_view name, int ranks) {
  try {
    return with_ranks(preset(name, 1), ranks);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// One gradient of so many elements.
Model one_gradient(Count count) {
  Model model;
  model.name = "one gradient";
  model.gradients = {{"weight", {count}, 1}};
  model.blocks = {{"block", 1, 1, count, 0, {}}};
  return model;
}

ScaleRow predicted(std::string_view machine, int ranks, Count count) {
  ScalingCase scaling;
  scaling.machine = preset(machine, 1);
  scaling.name = machine;
  scaling.model = one_gradient(count);
  scaling.compute = compute_of(scaling.model, Seconds{0.1});
  scaling.policy = parse_bucket_policy("none");
  scaling.gpus = {ranks};
  return model_scaling(scaling, kAlgorithm, {}).front();
}

/// All ranks choose what runs; rank 0 alone says what is predicted.
void expect_one_plan(std::string_view name, const Cluster& machine) {
  const MpiWorld& world = testing::all_ranks();
  const Communicator communicator(world, over_mpi(world, TransportChoice::network));
  ContenderOptions options;
  options.plan.algorithms = {kAlgorithm};
  options.plan_for = name;
  ContenderMaker maker(options, world, Seconds{60}, {.kind = kKind});
  for (const Count count : kCounts) {
    const ElementSizes sizes(kKind, ReduceOp::sum);
    const Plan shown =
        choose_plan(modelled_problem(kAlgorithm, machine, count, sizes), machine, Router(machine)).plan;
    const auto run = maker.plan(kAlgorithm, communicator, count);
    EXPECT_EQ(run, shown) << count << " elements: " << (run ? to_text(*run) : "nothing") << " runs, "
                          << to_text(shown) << " is shown";
    if (world.rank() != 0) continue;
    const ScaleRow row = predicted(name, world.size(), count);
    EXPECT_EQ(row.dims, dims_text(shown.dims)) << count;
    EXPECT_EQ(row.patterns, patterns_text(shown)) << count;
    EXPECT_EQ(row.lanes, shown.lanes) << count;
    EXPECT_EQ(row.chunk_bytes, shown.chunk.value) << count;
  }
}

TEST(Plans, OfAMachineAreTheSameInAllCommands) {
  int machines = 0;
  for (const std::string_view name : preset_names()) {
    const auto machine = machine_of(name, testing::all_ranks().size());
    if (!machine) continue;
    SCOPED_TRACE(name);
    expect_one_plan(name, *machine);
    ++machines;
  }
  EXPECT_GT(machines, 0);
}

}  // namespace
}  // namespace polyring
