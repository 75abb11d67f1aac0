#include "bench/scaling.hpp"

#include <algorithm>
#include <map>

#include "bench/strategies.hpp"
#include "collectives/catalogue.hpp"
#include "reports/published.hpp"
#include "simulation/price.hpp"
#include "simulation/simulate.hpp"
#include "topology/error.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

std::string bottleneck_text(const Simulation& simulation, const Router& router) {
  if (simulation.bottleneck < 0) return "latency";
  return fmt::format("{}, busy {:.0f} % of the time", router.name(simulation.bottleneck),
                     100 * simulation.busy);
}

ModelledStep model_step(const ScalingCase& scaling, const std::string& algorithm, const PlanWishes& wishes,
                        int gpus) {
  const Cluster cluster = with_ranks(scaling.machine, gpus);
  const Router router(cluster);
  const int size = size_of(scaling.kind);
  const std::vector<Bucket> buckets = make_buckets(scaling.model, scaling.policy, size);
  Count largest = 0;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.elements);

  ModelledStep result;
  result.nodes = cluster.host_count();
  SimulatedPlan chosen = choose_plan(algorithm, cluster, router, largest, size, wishes);
  result.plan = std::move(chosen.plan);
  result.bottleneck = bottleneck_text(chosen.simulation, router);
  std::map<Count, Seconds> times{{largest, chosen.simulation.time}};  // many gradients are equally large
  const Step step = run_step(scaling.compute, buckets, scaling.overlap, [&](std::size_t i) {
    const Count count = buckets[i].elements;
    const auto known = times.find(count);
    if (known != times.end()) return known->second;
    const Schedule schedule = make_schedule(result.plan, gpus, count, size);
    return times[count] = simulate(schedule, cluster, router, size).time;
  });
  result.time = with_stragglers(scaling.conditions, {scaling.compute, buckets, scaling.overlap, step}, gpus);
  add_feed(scaling.conditions, result.time, limit_of(step), static_cast<double>(gpus) * scaling.batch,
           result.nodes);
  return result;
}

void refuse_unknown_links(const ScalingCase& scaling) {
  const int most = *std::max_element(scaling.gpus.begin(), scaling.gpus.end());
  const std::string unknown = unknown_speed(with_ranks(scaling.machine, most));
  if (!unknown.empty()) {
    usage_error("{}, so nothing can be predicted; use --machine, or fill it in in the JSON of polyring probe",
                unknown);
  }
}

}  // namespace

int rails_of(const Machine& host) {
  return static_cast<int>(
      std::count_if(host.nics.begin(), host.nics.end(), [](const Nic& nic) { return nic.up(); }));
}

std::vector<ScaleRow> model_scaling(const ScalingCase& scaling, const std::string& algorithm,
                                    const PlanOptions& options) {
  refuse_unknown_links(scaling);
  const int host_gpus = scaling.machine.host(0).ranks();
  const auto images_per_second = [&](const ModelledStep& modelled, int gpus) {
    return gpus * scaling.batch / modelled.time.total.value;
  };
  // Dimensions that were asked for are for one count only, and never for the baseline.
  const PlanWishes wishes = options.wishes(algorithm);
  PlanWishes free = wishes;
  free.dims.clear();
  free.patterns.clear();
  const double host_images = images_per_second(model_step(scaling, algorithm, free, host_gpus), host_gpus);
  const PublishedScaling* published = find_published(scaling.name, scaling.model.name, algorithm);

  std::vector<ScaleRow> rows;
  for (const int gpus : scaling.gpus) {
    const Strategy strategy = for_gpus(scaling.strategy.value_or(Strategy{}), gpus);
    check_memory(scaling.model.name,
                 trained_parameters(balanced_stages(scaling.model, strategy.pipeline), strategy.intra),
                 scaling.machine.host(0).gpus.front().memory);
    const bool plain = strategy.replica_gpus() == 1 && !strategy.independent;
    const ModelledStep modelled =
        plain ? model_step(scaling, algorithm, wishes, gpus)
              : model_strategy(scaling, strategy, algorithm, wishes, with_ranks(scaling.machine, gpus));
    ScaleRow row;
    if (scaling.strategy) row.strategy = to_text(strategy);
    row.bubble = modelled.bubble;
    row.machine = scaling.name;
    row.model = scaling.model.name;
    row.algorithm = algorithm;
    row.dims = dims_text(modelled.plan.dims);
    row.lanes = modelled.plan.lanes;
    row.chunk_bytes = modelled.plan.chunk.value;
    row.gpus = gpus;
    row.nodes = modelled.nodes;
    row.batch = scaling.batch;
    row.bucket = to_text(scaling.policy);
    row.overlap = scaling.overlap;
    set_step(row, modelled.time);
    row.images_per_second = images_per_second(modelled, gpus);
    row.speedup = row.images_per_second / host_images;
    row.efficiency = row.speedup * host_gpus / gpus;
    if (const PublishedPoint* point = find_point(plain ? published : nullptr, gpus)) {
      row.published_speedup = point->speedup;
      row.published_efficiency = point->efficiency;
    }
    row.rails = rails_of(scaling.machine.host(0));
    row.bottleneck = modelled.bottleneck;
    row.source = Source::modelled;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace polyring
