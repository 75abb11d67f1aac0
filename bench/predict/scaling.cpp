#include "bench/predict/scaling.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/predict/strategies.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/published.hpp"
#include "simulation/in_network.hpp"
#include "simulation/price_planner.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

Count largest_of(const std::vector<Bucket>& buckets) {
  Count largest = 0;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.elements);
  return largest;
}

Bytes bytes_of(Count count, int size) {
  return {static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size)};
}

/// How one algorithm reduces buckets on a cluster.
struct Reducer {
  Plan plan;               // for the largest bucket
  std::string bottleneck;  // of that one's allreduce
  std::function<Seconds(Count)> time;
};

Reducer vendor_reducer(const std::string& algorithm, const Cluster& cluster, Count largest, int size) {
  const VendorRun run = vendor_run(algorithm, cluster, bytes_of(largest, size));
  const std::string bottleneck =
      bottleneck_text(vendor_simulation(run, bytes_of(largest, size)), Router(run.view));
  return {run.plan, fmt::format("{} ({} chooses {})", bottleneck, algorithm, run.choice),
          [&, algorithm, size](Count count) {
            const Bytes payload = bytes_of(count, size);
            return vendor_time(vendor_run(algorithm, cluster, payload), payload);
          }};
}

Reducer reducer_of(const std::string& algorithm, const Cluster& cluster, const Router& router, Count largest,
                   ElementSizes sizes, const PlanConstraints& constraints, const SimulationOptions& options) {
  if (is_vendor(algorithm)) return vendor_reducer(algorithm, cluster, largest, sizes.payload);
  const bool in_network = algorithm == kInNetwork;
  if (in_network) sizes = sizes.payload;  // switches keep what is exact to themselves
  const auto choose = [&, sizes, in_network, options](Count count) {
    return in_network ? choose_in_network(cluster, router, count, sizes, constraints, options)
                      : choose_plan(modelled_problem(algorithm, cluster, count, sizes), cluster, router,
                                    constraints, options);
  };
  SimulatedPlan chosen = choose(largest);
  // Many gradients of a model are equally large.
  std::map<Count, Seconds> times{{largest, chosen.simulation.time}};
  const bool each_planned = cluster.ranks() <= kMostPlannedForEach;
  const auto time = [&, choose, times, each_planned, sizes, in_network, options,
                     plan = chosen.plan](Count count) mutable {
    const auto [at, added] = times.try_emplace(count);
    if (!added) return at->second;
    if (each_planned) return at->second = choose(count).simulation.time;
    const Simulation of_largest_plan =
        in_network ? simulate_in_network(plan, cluster, router, count, sizes, options)
                   : simulate(make_schedule(plan, cluster.ranks(), count, sizes.payload), cluster, router,
                              sizes, options);
    return at->second = of_largest_plan.time;
  };
  return {std::move(chosen.plan), bottleneck_text(chosen.simulation, router), time};
}

ModelledStep model_step(const ScalingCase& scaling, const std::string& algorithm,
                        const PlanConstraints& constraints, int gpus) {
  const Cluster cluster = with_ranks(scaling.machine, gpus);
  const Router router(cluster);
  const ElementSizes sizes(scaling.kind, ReduceOp::avg, scaling.partials);
  const std::vector<Bucket> buckets = make_buckets(scaling.model, scaling.policy, sizes.payload);
  const Reducer reducer = reducer_of(algorithm, cluster, router, largest_of(buckets), sizes, constraints,
                                     {.costs = scaling.conditions.costs});

  ModelledStep result;
  result.nodes = cluster.host_count();
  result.plan = reducer.plan;
  result.bottleneck = reducer.bottleneck;
  const auto step_with = [&](double slowness) {
    return run_step(scaling.compute, buckets, scaling.overlap,
                    [&](std::size_t i) { return slowness * reducer.time(buckets[i].elements); });
  };
  const Step step = step_with(1);
  if (scaling.spread) {
    result.least = step.total().value / step_with(1 + *scaling.spread).total().value;
    result.most = step.total().value / step_with(1 / (1 + *scaling.spread)).total().value;
  }
  result.time = with_stragglers(scaling.conditions, {scaling.compute, buckets, scaling.overlap, step}, gpus);
  add_feed(scaling.conditions, result.time, limit_of(step), static_cast<double>(gpus) * scaling.batch,
           result.nodes);
  return result;
}

/// Data parallel and nothing else.
bool is_plain(const Strategy& strategy) { return strategy.replica_gpus() == 1 && !strategy.independent; }

/// Before anything is simulated.
void check_batches(const ScalingCase& scaling) {
  if (!scaling.global_batch) return;
  if (scaling.strategy && scaling.strategy->independent)
    usage_error("independent trials share no batch; use weak scaling for inter-model");
  for (const int gpus : scaling.gpus) with_share(scaling, gpus);
  with_share(scaling, scaling.machine.host(0).ranks());
}

/// A strategy's groups run schedules of ours.
void refuse_without_schedule(const std::string& algorithm) {
  if (!has_schedule(algorithm)) {
    usage_error(
        "{} is modelled for data-parallel steps only; choose another --algorithm, or leave --strategy out",
        algorithm);
  }
}

const TrainRow* find_measured(const ScalingCase& scaling, const std::string& algorithm, int gpus) {
  for (const TrainRow& row : scaling.measured)
    if (row.algorithm == algorithm && row.gpus == gpus) return &row;
  return nullptr;
}

/// What a measured step and a modelled one say in the same words.
ScaleRow measured_row(const TrainRow& measured) {
  ScaleRow row;
  row.dims = measured.dims;
  row.patterns = measured.patterns;
  row.lanes = measured.lanes;
  row.chunk_bytes = measured.chunk_bytes;
  row.nodes = measured.nodes;
  row.iteration_ms = measured.iteration_ms.median;
  row.images_per_second = measured.images_per_second;
  row.exposed_comm_ms = measured.exposed_comm_ms;
  row.source = measured.source;
  return row;
}

/// Its efficiency_low and _high are parts of the efficiency still.
ScaleRow modelled_row(const ScalingCase& scaling, const std::string& algorithm,
                      const PlanConstraints& constraints, int gpus) {
  const Strategy strategy = for_gpus(scaling.strategy.value_or(Strategy{}), gpus);
  check_memory(scaling.model.name,
               trained_parameters(balanced_stages(scaling.model, strategy.pipeline), strategy.intra),
               scaling.machine.host(0).gpus.front().memory);
  if (!is_plain(strategy)) refuse_without_schedule(algorithm);
  const ModelledStep modelled = is_plain(strategy) ? model_step(scaling, algorithm, constraints, gpus)
                                                   : model_strategy(scaling, strategy, algorithm, constraints,
                                                                    with_ranks(scaling.machine, gpus));
  ScaleRow row;
  if (scaling.strategy) row.strategy = to_text(strategy);
  row.bubble = modelled.bubble;
  row.dims = dims_text(modelled.plan.dims);
  if (has_schedule(algorithm)) row.patterns = if_any(patterns_text(modelled.plan));
  row.lanes = modelled.plan.lanes;
  row.chunk_bytes = modelled.plan.chunk.value;
  row.nodes = modelled.nodes;
  set_step(row, modelled.time);
  row.images_per_second = static_cast<double>(gpus) * scaling.batch / modelled.time.total.value;
  row.efficiency_low = modelled.least;
  row.efficiency_high = modelled.most;
  row.bottleneck = modelled.bottleneck;
  row.source = Source::modelled;
  return row;
}

void add_published(const ScalingCase& scaling, const std::string& algorithm, std::vector<ScaleRow>& rows) {
  if (scaling.global_batch) return;  // what was published is weak scaling
  const PublishedScaling* published = find_published(scaling.name, scaling.model.name, algorithm);
  for (ScaleRow& row : rows) {
    if (!is_plain(for_gpus(scaling.strategy.value_or(Strategy{}), row.gpus))) continue;
    if (const PublishedPoint* point = find_point(published, row.gpus)) {
      row.published_speedup = point->speedup;
      row.published_efficiency = point->efficiency;
    }
  }
}

void refuse_unknown_links(const ScalingCase& scaling) {
  const int most = *std::max_element(scaling.gpus.begin(), scaling.gpus.end());
  const Cluster cluster = with_ranks(scaling.machine, most);
  const Router router(cluster);
  const std::string unknown =
      scaling.network_fitted ? router.unknown_speed_in_hosts() : router.unknown_speed();
  if (!unknown.empty()) {
    usage_error("{}, so nothing can be predicted; {}", unknown,
                scaling.spread
                    ? "calibrate with runs that cross it, too"
                    : "use --machine, give it by --assume, or fill it in in the JSON of polyring probe");
  }
}

}  // namespace

int rails_of(const Machine& host) {
  return static_cast<int>(
      std::count_if(host.nics.begin(), host.nics.end(), [](const Nic& nic) { return nic.up(); }));
}

ScalingCase with_share(const ScalingCase& scaling, int gpus) {
  ScalingCase result = scaling;
  if (!scaling.global_batch) return result;
  if (*scaling.global_batch % gpus != 0) {
    const bool host = gpus == scaling.machine.host(0).ranks();
    usage_error("a global batch of {} does not divide among {}{} GPUs{}; change --global-batch, or --gpus",
                *scaling.global_batch, host ? "the " : "", gpus, host ? " of one host, the baseline" : "");
  }
  result.batch = *scaling.global_batch / gpus;
  const double part = static_cast<double>(result.batch) / scaling.batch;
  result.compute.forward = part * scaling.compute.forward;
  result.compute.backward = part * scaling.compute.backward;
  return result;
}

std::vector<ScaleRow> model_scaling(const ScalingCase& scaling, const std::string& algorithm,
                                    const PlanOptions& options) {
  refuse_unknown_links(scaling);
  check_batches(scaling);
  const int host_gpus = scaling.machine.host(0).ranks();
  // Dimensions that were asked for are for one count only, and never for the baseline.
  const PlanConstraints constraints = options.constraints(algorithm);
  PlanConstraints free = constraints;
  free.dims.clear();
  free.patterns.clear();
  const TrainRow* measured_host = find_measured(scaling, algorithm, host_gpus);
  const ScalingCase host = with_share(scaling, host_gpus);
  const double host_images = measured_host != nullptr
                                 ? measured_host->images_per_second
                                 : static_cast<double>(host_gpus) * host.batch /
                                       model_step(host, algorithm, free, host_gpus).time.total.value;

  std::vector<ScaleRow> rows;
  for (const int gpus : scaling.gpus) {
    const TrainRow* measured = find_measured(scaling, algorithm, gpus);
    const ScalingCase at = with_share(scaling, gpus);
    ScaleRow row =
        measured != nullptr ? measured_row(*measured) : modelled_row(at, algorithm, constraints, gpus);
    row.machine = scaling.name;
    row.model = scaling.model.name;
    row.algorithm = algorithm;
    row.gpus = gpus;
    row.batch = at.batch;
    row.global_batch = scaling.global_batch;
    row.bucket = to_text(scaling.policy);
    row.overlap = scaling.overlap;
    row.speedup = row.images_per_second / host_images;
    row.efficiency = row.speedup * host_gpus / gpus;
    for (std::optional<double>* end : {&row.efficiency_low, &row.efficiency_high})
      if (*end) *end = **end * row.efficiency;
    row.rails = rails_of(scaling.machine.host(0));
    rows.push_back(std::move(row));
  }
  add_published(scaling, algorithm, rows);
  return rows;
}

std::pair<Bytes, Bytes> allreduce_sizes(const ScalingCase& scaling) {
  const int size = size_of(scaling.kind);
  const std::vector<Bucket> buckets = make_buckets(scaling.model, scaling.policy, size);
  const auto [least, largest] =
      std::minmax_element(buckets.begin(), buckets.end(),
                          [](const Bucket& a, const Bucket& b) { return a.elements < b.elements; });
  return {bytes_of(least->elements, size), bytes_of(largest->elements, size)};
}

std::vector<Citation> algorithm_inputs(const ScalingCase& scaling, const std::string& algorithm) {
  const int most = *std::max_element(scaling.gpus.begin(), scaling.gpus.end());
  if (algorithm == kInNetwork) return in_network_inputs(with_ranks(scaling.machine, most));
  if (!is_vendor(algorithm)) return {};
  const int size = size_of(scaling.kind);
  const Count largest = largest_of(make_buckets(scaling.model, scaling.policy, size));
  return vendor_run(algorithm, with_ranks(scaling.machine, most), bytes_of(largest, size)).inputs;
}

}  // namespace polyring
