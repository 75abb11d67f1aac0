// Run under mpirun with any number of ranks: the plan that polyring plan shows for a machine, the one that
// polyring scale predicts with, and the one that polyring allreduce --plan-for runs are the same. Prints one
// line per failure and a summary on rank 0.
#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "bench/contenders/rivals.hpp"
#include "bench/predict/scaling.hpp"
#include "simulation/price_planner.hpp"
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

class PlannerTest {
 public:
  explicit PlannerTest(const MpiWorld& world)
      : world_(world), transport_(make_world_transport(world, TransportChoice::mpi)) {}

  void plans_are_the_same(std::string_view name) {
    const auto machine = machine_of(name, world_.size());
    if (!machine) return;
    RivalOptions options;
    options.plan.algorithms = {kAlgorithm};
    options.plan_for = name;
    RivalMaker maker(options, world_, Seconds{60});
    for (const Count count : kCounts) {
      const auto run = maker.plan(kAlgorithm, transport_, kKind, ReduceOp::sum, count);
      const std::string what = fmt::format("{} elements on {} ranks of {}", count, world_.size(), name);
      const Plan shown =
          choose_plan(modelled_problem(kAlgorithm, *machine, count, ElementSizes(kKind, ReduceOp::sum)),
                      *machine, Router(*machine))
              .plan;
      expect(run == shown,
             fmt::format("{}: {} runs, {} is shown", what, run ? to_text(*run) : "nothing", to_text(shown)));
      if (world_.rank() != 0) continue;
      const ScaleRow row = predicted(name, world_.size(), count);
      expect(row.dims == dims_text(shown.dims) && row.patterns == patterns_text(shown) &&
                 row.lanes == shown.lanes && row.chunk_bytes == shown.chunk.value,
             fmt::format("{}: {} {} is predicted, {} is shown", what, row.dims, row.patterns.value_or(""),
                         to_text(shown)));
    }
  }

  int failures() const { return static_cast<int>(world_.sum(failures_)); }
  std::int64_t compared() const { return compared_; }

 private:
  void expect(bool truth, const std::string& otherwise) {
    ++compared_;
    if (truth) return;
    ++failures_;
    fmt::print("rank {}: {}\n", world_.rank(), otherwise);
  }

  const MpiWorld& world_;
  WorldTransport transport_;
  std::int64_t compared_ = 0;
  int failures_ = 0;
};

}  // namespace
}  // namespace polyring

int main() {
  const polyring::MpiWorld world;
  try {
    polyring::PlannerTest test(world);
    for (const std::string_view name : polyring::preset_names()) test.plans_are_the_same(name);
    const int failures = test.failures();
    if (world.rank() == 0) fmt::print("{} comparisons, {} failures\n", test.compared(), failures);
    return failures == 0 && test.compared() > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    world.abort(1);
  }
}
