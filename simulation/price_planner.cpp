#include "simulation/price_planner.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/too_many_transfers.hpp"

namespace polyring {
namespace {

/// Candidates that are simulated, with rings everywhere and without, and how much higher than the lowest
/// their prices may be.
constexpr std::size_t kMostSimulated = 3;
constexpr double kPromising = 1.5;
/// Of more ranks, whose workload takes its time to write down, fewer are simulated.
constexpr int kManyRanks = 4096;
constexpr std::size_t kFewSimulated = 1;
/// Where thousands of ranks are all different, that takes too long: then the price decides.
constexpr std::uint64_t kManyEvents = 1'000'000;
/// Events and rates beyond which a plan is not simulated where another one that is as good has fewer
/// messages.
constexpr std::uint64_t kMuchWork = 40'000'000;

/// Whether this plan crosses a link of unknown speed and the first, which has the lowest price, does not.
bool crosses_unknown(const std::vector<ConsideredPlan>& plans, std::size_t plan) {
  return !plans[plan].unknown.empty() && plans.front().unknown.empty();
}

/// Of the cheapest plan that has not too many transfers; the plans before it are taken out. Throws where all
/// have.
Workload first_workload(std::vector<PricedPlan>& plans,
                        const std::function<Workload(const Plan&)>& workload_of) {
  const auto same_transfers = [](Plan a, const Plan& b) {
    a.chunk = b.chunk;
    return a == b;
  };
  while (true) {
    const Plan cheapest = plans.front().plan;
    try {
      return workload_of(cheapest);
    } catch (const TooManyTransfers&) {
      const auto too_large = [&](const PricedPlan& plan) { return same_transfers(plan.plan, cheapest); };
      if (std::ranges::all_of(plans, too_large)) throw;
      std::erase_if(plans, too_large);
    }
  }
}

}  // namespace

std::vector<ConsideredPlan> consider_plans(const Problem& problem, const Cluster& cluster,
                                           const Router& router, const PlanConstraints& constraints,
                                           const SimulationOptions& options) {
  const auto workload_of = [&](const Plan& plan) {
    return make_workload(make_schedule(plan, cluster.ranks(), problem.count, problem.sizes.payload), cluster,
                         router, problem.sizes, options.costs, options.classes);
  };
  std::vector<PricedPlan> all = price_plans(problem, cluster, router, constraints);
  Workload first = first_workload(all, workload_of);
  const std::size_t smallest = fewest_chunks(all, cluster.ranks(), problem.count, problem.sizes);
  std::vector<ConsideredPlan> plans;
  for (PricedPlan& priced : all)
    plans.push_back(
        {std::move(priced.plan), std::move(priced.price), std::nullopt, std::move(priced.unknown)});
  SimulationLimits limits;
  if (smallest > 0) limits.work = kMuchWork;
  plans.front().simulation = simulate_within(std::move(first), options, limits);
  if (!plans.front().simulation) {
    plans[smallest].simulation = simulate(workload_of(plans[smallest].plan), options);
    std::rotate(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(smallest),
                plans.begin() + static_cast<std::ptrdiff_t>(smallest) + 1);
    return plans;
  }
  Simulation best = *plans.front().simulation;
  const double highest = kPromising * plans.front().price.time.value;
  std::array<std::size_t, 2> simulated{};  // of other patterns, and of rings
  ++simulated[is_all_rings(plans.front().plan)];
  const std::size_t most_of_kind = cluster.ranks() > kManyRanks ? kFewSimulated : kMostSimulated;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (best.events > kManyEvents || plans[i].price.time.value > highest) break;
    if (crosses_unknown(plans, i)) break;
    std::size_t& of_kind = simulated[is_all_rings(plans[i].plan)];
    if (of_kind >= most_of_kind) continue;
    ++of_kind;
    limits = {best.time.value, kManyEvents};
    try {
      plans[i].simulation = simulate_within(workload_of(plans[i].plan), options, limits);
    } catch (const TooManyTransfers&) {
      continue;
    }
    if (plans[i].simulation && plans[i].simulation->time < best.time) best = *plans[i].simulation;
  }
  std::stable_sort(plans.begin(), plans.end(), [](const ConsideredPlan& a, const ConsideredPlan& b) {
    if (!a.simulation || !b.simulation) return a.simulation.has_value() && !b.simulation.has_value();
    return a.simulation->time < b.simulation->time;
  });
  return plans;
}

SimulatedPlan choose_plan(const Problem& problem, const Cluster& cluster, const Router& router,
                          const PlanConstraints& constraints, const SimulationOptions& options) {
  auto plans = consider_plans(problem, cluster, router, constraints, options);
  return {std::move(plans.front().plan), *plans.front().simulation};
}

PlanChoice PricePlanner::choose(const Problem& problem, const PlanConstraints& constraints) const {
  if (trust_ == Trust::model) {
    ConsideredPlan best = std::move(consider_plans(problem, cluster_, router_, constraints).front());
    if (!best.unknown.empty())
      usage_error("{}, so that no plan is known to be good; fill it in in the JSON of polyring probe",
                  best.unknown);
    return {std::move(best.plan), PlanSource::simulation};
  }
  std::vector<PricedPlan> plans = price_plans(problem, cluster_, router_, constraints);
  const std::size_t best = fewest_chunks(plans, problem.grid.ranks, problem.count, problem.sizes);
  return {std::move(plans[best].plan), PlanSource::price};
}

}  // namespace polyring
