#include "bench/priced_plans.hpp"

#include <fmt/format.h>

#include "bench/calibration_file.hpp"
#include "bench/collective.hpp"
#include "bench/record.hpp"
#include "bench/run_cluster.hpp"
#include "bench/tuned_plans.hpp"
#include "simulation/simulate.hpp"

namespace polyring {
namespace {

Cluster calibrated_cluster(const std::string& file, const MpiWorld& world) {
  const Calibration calibration = read_calibration(file).calibration;
  return calibrated(with_ranks_of(host_memory_cluster(world), placement_of(world), "this job"), calibration);
}

}  // namespace

PricedPlans::PricedPlans(const std::string& file, const MpiWorld& world) : world_(world), file_(file) {
  on_root(world, [&] {
    cluster_ = calibrated_cluster(file, world);
    const Router router(*cluster_);
    if (router.unknown_speed().empty()) return;
    usage_error(
        "'{}' does not say how fast messages between these ranks are: {}; calibrate on runs that cross "
        "the same kinds of links, or leave --calibration out",
        file, router.unknown_speed());
  });
}

Plan PricedPlans::plan_for(const PlanWishes& wishes, Count count, ElementSizes sizes) const {
  std::vector<TunedPlan> choices;
  on_root(world_, [&] {
    TunedPlan choice;
    choice.place.ranks = world_.size();
    choice.payload = {static_cast<std::uint64_t>(count * sizes.payload)};
    SimulatedPlan priced = choose_plan("multi-ring", *cluster_, Router(*cluster_), count, sizes, wishes);
    choice.plan = std::move(priced.plan);
    choice.time_us = choice.default_time_us = priced.simulation.time.value * 1e6;
    choices.push_back(std::move(choice));
  });
  return roots_choices(choices, world_).front().plan;
}

}  // namespace polyring
