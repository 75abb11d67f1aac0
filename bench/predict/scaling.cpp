#include "bench/predict/scaling.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/predict/scaling_baseline.hpp"
#include "bench/predict/strategies.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/published.hpp"
#include "simulation/in_network.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// Before anything is simulated.
void check_batches(const ScalingCase& scaling) {
  if (!scaling.global_batch) return;
  if (scaling.strategy && scaling.strategy->independent)
    usage_error("independent trials share no batch; use weak scaling for inter-model");
  for (const int gpus : scaling.gpus) with_share(scaling, gpus);
  if (scaling.baseline.host) with_share(scaling, scaling.machine.host(0).ranks());
}

/// A strategy's groups run schedules of ours, or what NCCL and MPI choose.
void refuse_without_groups(const std::string& algorithm) {
  if (!has_schedule(algorithm) && !is_vendor(algorithm)) {
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

void describe(ScaleRow& row, const std::string& algorithm, const Plan& plan, const StepTime& time) {
  row.dims = dims_text(plan.dims);
  if (has_schedule(algorithm)) row.patterns = if_any(patterns_text(plan));
  row.lanes = plan.lanes;
  row.chunk_bytes = plan.chunk.value;
  set_step(row, time);
  row.source = Source::modelled;
}

void set_efficiency(ScaleRow& row, const std::vector<CostRange>& ranges,
                    const std::function<double(const StepCosts&)>& efficiency) {
  const Interval interval = interval_of(ranges, efficiency);
  row.efficiency = interval.middle;
  if (ranges.empty()) return;
  row.efficiency_low = interval.low;
  row.efficiency_high = interval.high;
  row.widest_unknown = if_any(interval.widest);
}

/// A step of data-parallel training, and its efficiency over `baseline` with what is not exactly known.
ScaleRow modelled_row(const ScalingCase& scaling, const std::string& algorithm,
                      const PlanConstraints& constraints, int gpus, const ScalingBaseline& baseline) {
  const StepModel model(scaling, algorithm, constraints, gpus);
  ScaleRow row;
  row.bucket = to_text(scaling.policy);
  row.overlap = scaling.overlap;
  const StepTime time = model.time(middle_of(model.ranges()));
  describe(row, algorithm, model.plan(), time);
  row.nodes = model.nodes();
  row.bottleneck = model.bottleneck();
  row.images_per_second = static_cast<double>(gpus) * scaling.batch / time.total.value;
  set_efficiency(row, model.ranges(), [&](const StepCosts& costs) {
    return model.throughput(costs) / gpus / baseline.of_gpu(costs, gpus);
  });
  return row;
}

ScaleRow strategy_row(const ScalingCase& scaling, const Strategy& strategy, const std::string& algorithm,
                      const PlanConstraints& constraints, int gpus, const ScalingBaseline& baseline) {
  refuse_without_groups(algorithm);
  StrategyModel model(scaling, strategy, algorithm, constraints, with_ranks(scaling.machine, gpus));
  const ModelledStep modelled = model.step();
  ScaleRow row;
  describe(row, algorithm, modelled.plan, modelled.time);
  GradientExchange exchange = exchange_of(scaling, strategy);
  row.bucket = std::move(exchange.bucket);
  row.overlap = exchange.overlap;
  row.nodes = modelled.nodes;
  row.bubble = modelled.bubble;
  row.bottleneck = modelled.bottleneck;
  row.images_per_second = static_cast<double>(gpus) * scaling.batch / modelled.time.total.value;
  set_efficiency(row, model.ranges(), [&](const StepCosts& costs) {
    return model.throughput(costs) / gpus / baseline.of_gpu(costs, gpus);
  });
  return row;
}

ScaleRow row_of(const ScalingCase& scaling, const std::string& algorithm, const PlanConstraints& constraints,
                int gpus, const ScalingBaseline& baseline) {
  if (const TrainRow* measured = find_measured(scaling, algorithm, gpus)) {
    ScaleRow row = measured_row(*measured);
    row.bucket = to_text(scaling.policy);
    row.overlap = scaling.overlap;
    row.efficiency = row.images_per_second / gpus / baseline.of_gpu();
    return row;
  }
  const Strategy strategy = for_gpus(scaling.strategy.value_or(Strategy{}), gpus);
  ScaleRow row = strategy.is_plain()
                     ? modelled_row(scaling, algorithm, constraints, gpus, baseline)
                     : strategy_row(scaling, strategy, algorithm, constraints, gpus, baseline);
  if (scaling.strategy) row.strategy = to_text(strategy);
  return row;
}

void add_published(const ScalingCase& scaling, const std::string& algorithm, std::vector<ScaleRow>& rows) {
  if (scaling.global_batch) return;  // what was published is weak scaling
  const PublishedScaling* published = find_published(scaling.name, scaling.model.name, algorithm);
  for (ScaleRow& row : rows) {
    if (!for_gpus(scaling.strategy.value_or(Strategy{}), row.gpus).is_plain()) continue;
    if (const PublishedPoint* point = find_point(published, row.gpus)) {
      row.published_speedup = point->speedup;
      row.published_efficiency = point->efficiency;
    }
  }
}

/// Of a data-parallel row; strategies are checked as they are modelled. Measured runs are not checked: they
/// did fit.
void check_plain(const ScalingCase& at, int gpus) {
  const Strategy strategy = for_gpus(at.strategy.value_or(Strategy{}), gpus);
  if (strategy.is_plain() && at.measured.empty()) check_strategy(at, strategy);
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
    const bool host = scaling.baseline.host && gpus == scaling.machine.host(0).ranks();
    usage_error("a global batch of {} does not divide among {}{} GPUs{}; change --global-batch, or --gpus",
                *scaling.global_batch, host ? "the " : "", gpus, host ? " of one host, the baseline" : "");
  }
  result.batch = *scaling.global_batch / gpus;
  result.at_once = std::min(result.batch, scaling.at_once.value_or(scaling.batch));
  const double part = static_cast<double>(result.batch) / scaling.batch;
  result.compute.forward = part * scaling.compute.forward;
  result.compute.backward = part * scaling.compute.backward;
  return result;
}

std::vector<ScaleRow> model_scaling(const ScalingCase& scaling, const std::string& algorithm,
                                    const PlanOptions& options) {
  refuse_unknown_links(scaling);
  check_batches(scaling);
  const PlanConstraints constraints = options.constraints(algorithm);
  const ScalingBaseline baseline(scaling, algorithm, options);
  std::vector<ScaleRow> rows;
  for (const int gpus : scaling.gpus) {
    const ScalingCase at = with_share(scaling, gpus);
    check_plain(at, gpus);
    ScaleRow row = row_of(at, algorithm, constraints, gpus, baseline);
    row.machine = scaling.name;
    row.model = scaling.model.name;
    row.algorithm = algorithm;
    row.gpus = gpus;
    row.batch = at.batch;
    row.global_batch = scaling.global_batch;
    row.speedup = row.efficiency * gpus / baseline.gpus();
    row.rails = rails_of(scaling.machine.host(0));
    if (scaling.model.sample.name != "images") row.samples = scaling.model.sample.name;
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
