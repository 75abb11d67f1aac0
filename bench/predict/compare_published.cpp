#include "bench/predict/compare_published.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/predict/compute.hpp"
#include "bench/predict/scale_request.hpp"
#include "models/throughput.hpp"
#include "reports/published.hpp"
#include "topology/presets.hpp"
#include "topology/rails.hpp"

namespace polyring {
namespace {

/// With overlap gradients travel in buckets; this size is our choice, since none was published.
constexpr const char* kBucket = "fused:64MiB";

/// Batches that both have a cited throughput, where none was published.
constexpr int kBatches[] = {32, 64};

std::vector<Combination> combinations(std::string_view machine, std::optional<int> batch) {
  const std::vector<int> batches =
      batch ? std::vector{*batch} : std::vector(std::begin(kBatches), std::end(kBatches));
  std::vector<Combination> all;
  for (int rails = 1; rails <= rails_of(preset(machine, 1).host(0)); ++rails) {
    for (const bool overlap : {false, true}) {
      for (const int of_gpu : batches) all.push_back({rails, overlap, of_gpu});
    }
  }
  return all;
}

/// Where no throughput was published for a batch, a sample takes as long as in one of kBatches[0].
StepCompute compute_for(const Model& model, const std::string& gpu, int batch) {
  ComputeOptions options;
  options.batch = find_throughput(gpu, model.name, batch) ? batch : kBatches[0];
  options.precision = to_text(Precision::single);
  const StepCompute compute = options.resolve(model, {gpu, {}}).step;
  const double part = static_cast<double>(batch) / *options.batch;
  return {part * compute.forward, part * compute.backward, compute.optimizer};
}

/// Facebook's allreduce reduces inside the server, exchanges by halving and doubling between servers and
/// spreads inside (arXiv:1706.02677, section 4): a multi-ring with these patterns.
PlanOptions plan_of(std::string_view algorithm, int gpus, int per_host) {
  PlanOptions plan;
  plan.algorithms = {"multi-ring"};
  if (algorithm == "halving-doubling" && gpus > per_host) {
    plan.dims = fmt::format("{}x{}", per_host, gpus / per_host);
    plan.patterns = {"ring", "halving"};
  }
  return plan;
}

Modelled model(std::string_view machine, std::string_view model, std::string_view algorithm,
               const std::vector<int>& gpus, const Combination& combination) {
  ScalingCase scaling;
  scaling.machine = preset(machine, 1);
  Machine& host = scaling.machine.groups.front().machine;
  host = with_rails(std::move(host), combination.rails);
  scaling.name = machine;
  scaling.model = make_model(model);
  scaling.batch = combination.batch;
  scaling.overlap = combination.overlap;
  scaling.baseline.host = true;
  scaling.framework = &find_framework(framework_of(machine));
  scaling.policy = parse_bucket_policy(combination.overlap ? kBucket : "none");
  scaling.compute = compute_for(scaling.model, host.gpus.front().model, combination.batch);
  Modelled result{combination, {}};
  for (const int count : gpus) {
    scaling.gpus = {count};
    const auto rows = model_scaling(scaling, "multi-ring", plan_of(algorithm, count, host.ranks()));
    result.rows.insert(result.rows.end(), rows.begin(), rows.end());
  }
  return result;
}

void model_all(PublishedComparison& comparison, std::string_view machine, std::string_view model_name,
               std::string_view algorithm, std::optional<int> batch) {
  std::vector<int> gpus;
  for (const PublishedFigure& figure : comparison.figures) {
    if (gpus.empty() || gpus.back() != figure.gpus) gpus.push_back(figure.gpus);
  }
  for (const Combination& combination : combinations(machine, batch)) {
    comparison.modelled.push_back(model(machine, model_name, algorithm, gpus, combination));
  }
}

/// Of all combinations.
std::vector<ScaleRow> rows_with(const PublishedComparison& comparison, int gpus) {
  std::vector<ScaleRow> found;
  for (const Modelled& modelled : comparison.modelled) {
    for (const ScaleRow& row : modelled.rows)
      if (row.gpus == gpus) found.push_back(row);
  }
  return found;
}

}  // namespace

std::vector<std::string> comparison_notes() {
  return {
      fmt::format("A sample of a batch without a published throughput takes as long as one of a batch of {}.",
                  kBatches[0]),
      fmt::format("With overlap gradients travel in buckets, {}: our choice, since none was published.",
                  kBucket)};
}

std::vector<ScaleRow> combined_rows(const PublishedComparison& comparison) {
  std::vector<ScaleRow> combined;
  for (const PublishedFigure& figure : comparison.figures) {
    const std::vector<ScaleRow> each = rows_with(comparison, figure.gpus);
    if (!figure.efficiency || each.empty() || each.front().speedup <= 1) continue;
    ScaleRow& row = combined.emplace_back(each.front());
    row.machine = comparison.system;
    row.published_run = comparison.system;
    if (!figure.statement.empty()) *row.published_run += ": " + figure.statement;
    row.held_out = false;
    row.combinations = static_cast<int>(each.size());
    row.published_speedup.reset();
    row.published_efficiency = figure.efficiency;
    row.rails.reset();
    row.widest_unknown.reset();
    row.bottleneck.reset();
    row.efficiency = 0;
    for (const ScaleRow& one : each) {
      row.efficiency += one.efficiency / static_cast<double>(each.size());
      row.efficiency_low = std::min(*row.efficiency_low, *one.efficiency_low);
      row.efficiency_high = std::max(*row.efficiency_high, *one.efficiency_high);
    }
    row.speedup *= row.efficiency / each.front().efficiency;
    *row.efficiency_low -= kPublishedRounding;
    *row.efficiency_high += kPublishedRounding;
  }
  return combined;
}

std::vector<PublishedComparison> compare_published() {
  std::vector<PublishedComparison> comparisons;
  for (const PublishedScaling& series : published_scaling()) {
    PublishedComparison& comparison = comparisons.emplace_back();
    comparison.system = series.system;
    comparison.source = series.source;
    for (const PublishedPoint& point : series.points)
      comparison.figures.push_back({point.gpus, "", point.efficiency, {}});
    model_all(comparison, series.machine, series.model, series.algorithm, series.batch);
  }
  for (const PublishedClaim& claim : published_claims()) {
    const bool more = !comparisons.empty() && comparisons.back().system == claim.system;
    PublishedComparison& comparison = more ? comparisons.back() : comparisons.emplace_back();
    comparison.system = claim.system;
    comparison.source = claim.source;
    comparison.figures.push_back(
        {claim.gpus, std::string(claim.statement), claim.efficiency, claim.images_per_second});
    if (!more) model_all(comparison, claim.machine, claim.model, claim.algorithm, claim.batch);
  }
  return comparisons;
}

}  // namespace polyring
