#include "bench/predict/published_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/predict/conditions.hpp"
#include "bench/predict/published_training_json.hpp"
#include "bench/predict/step_model.hpp"
#include "reports/published_comparison.hpp"
#include "reports/published_runs.hpp"
#include "topology/inventory/formats/machine_toml.hpp"

namespace polyring {
namespace {

using Json = nlohmann::json;

PublishedTraining run_of(const Json& row) {
  PublishedTraining run;
  run.id = row.at("id");
  run.held_out = row.at("list") == "check";
  run.system = row.at("system");
  run.framework = row.at("framework");
  run.model = row.at("model");
  run.batch = row.at("batch");
  run.source = row.at("source");
  run.over_host = row.at("baseline").get<std::string>().starts_with("one host");
  run.real_data = row.at("data").get<std::string>().starts_with("real");
  if (row.contains("single_gpu_rate")) run.single_gpu_rate = row.at("single_gpu_rate").get<double>();
  for (const Json& point : row.at("points")) {
    if (point.at("gpus") == 1) continue;
    run.points.push_back(
        {point.at("gpus"), point.at("efficiency"), !point.contains("rate"), point.value("accumulation", 1)});
  }
  const Json& modelled = row.at("modelled");
  run.machine = modelled.at("machine");
  run.costs = modelled.at("framework");
  run.bucket = modelled.value("bucket", "");
  run.gradients = modelled.value("gradients", std::vector<std::string>{"float"});
  if (run.points.empty() || run.source.empty())
    throw Error(ExitCode::internal, fmt::format("published training: {} has no points or source", run.id));
  return run;
}

/// A GPU's rate, from that of a host where no other is published.
double rate_of_gpu(const PublishedTraining& run, const Json& row) {
  if (run.single_gpu_rate) return *run.single_gpu_rate;
  return row.at("points").front().at("rate").get<double>() / run.points.front().gpus;
}

ScalingCase case_of(const PublishedTraining& run, const std::string& gradients) {
  ScalingCase scaling;
  scaling.machine = parse_machine_toml(run.machine, run.id);
  scaling.name = run.system;
  scaling.model = make_model(run.model);
  scaling.kind = parse_element_kind(gradients);
  const Framework& framework = find_framework(run.costs);
  scaling.framework = &framework;
  scaling.policy = run.bucket.empty() ? framework.bucket : parse_bucket_policy(run.bucket);
  scaling.overlap = framework.overlap && scaling.policy.kind != BucketPolicy::Kind::none;
  scaling.waits_for_input = run.real_data && !run.over_host;
  return scaling;
}

/// A step of several batches whose gradients are exchanged once, during the last one's backward pass.
ScalingCase accumulated(ScalingCase scaling, const PublishedTraining& run, int batches) {
  scaling.batch = batches * run.batch;
  const StepCompute one = compute_of(scaling.model, {run.batch / *run.single_gpu_rate});
  scaling.compute = one;
  scaling.compute.forward = one.forward + (batches - 1.0) * one.total();
  return scaling;
}

constexpr const char* kLibrary = "nccl";

/// What does not follow from the efficiency.
void describe(ScaleRow& row, const PublishedTraining& run, const TrainingPoint& point,
              const ScalingCase& scaling) {
  row.machine = run.system;
  row.model = run.model;
  row.algorithm = kLibrary;
  row.gpus = point.gpus;
  row.batch = scaling.batch;
  row.bucket = to_text(scaling.policy);
  row.overlap = scaling.overlap;
  row.published_efficiency = point.efficiency;
  row.published_run = run.id;
  row.held_out = run.held_out;
  row.framework = run.costs;
  if (scaling.model.sample.name != "images") row.samples = scaling.model.sample.name;
}

ScaleRow check_point(const PublishedTraining& run, const TrainingPoint& point, const std::string& gradients) {
  const ScalingCase plain = case_of(run, gradients);
  const ScalingCase at = accumulated(plain, run, point.accumulation);
  const StepModel model(at, kLibrary, {}, point.gpus);
  std::optional<ScalingCase> of_host;
  std::optional<StepModel> host;
  if (run.over_host) {
    of_host = accumulated(plain, run, run.points.front().accumulation);
    host.emplace(*of_host, kLibrary, PlanConstraints{}, run.points.front().gpus);
  }
  const Interval interval = interval_of(model.ranges(), [&](const StepCosts& costs) {
    const double of_gpu = model.throughput(costs) / point.gpus;
    if (!host) return of_gpu / *run.single_gpu_rate;
    StepCosts there = costs;
    there.network = middle_of(host->ranges()).network;
    return of_gpu / (host->throughput(there) / run.points.front().gpus);
  });
  ScaleRow row;
  describe(row, run, point, at);
  set_step(row, model.time(middle_of(model.ranges())));
  row.nodes = model.nodes();
  row.bottleneck = if_any(model.bottleneck());
  row.images_per_second = point.gpus * at.batch / row.iteration_ms * 1e3;
  row.efficiency = interval.middle;
  row.efficiency_low = interval.low;
  row.efficiency_high = interval.high;
  row.widest_unknown = if_any(interval.widest);
  return row;
}

}  // namespace

std::vector<PublishedTraining> parse_published_training(std::string_view json) {
  std::vector<PublishedTraining> runs;
  try {
    const Json file = Json::parse(json);
    for (const Json& row : file.at("results")) {
      PublishedTraining run = run_of(row);
      run.single_gpu_rate = rate_of_gpu(run, row);
      runs.push_back(std::move(run));
    }
  } catch (const Json::exception& error) {
    throw Error(ExitCode::internal, fmt::format("published training: {}", error.what()));
  }
  return runs;
}

const std::vector<PublishedTraining>& published_training() {
  static const std::vector<PublishedTraining> runs = parse_published_training(kPublishedTrainingJson);
  return runs;
}

std::vector<ScaleRow> check_training(const PublishedTraining& run) {
  std::vector<ScaleRow> checked;
  const int baseline = run.over_host ? run.points.front().gpus : 1;
  for (const TrainingPoint& point : run.points) {
    if (point.gpus == baseline) continue;
    std::vector<ScaleRow> each;
    for (const std::string& gradients : run.gradients) each.push_back(check_point(run, point, gradients));
    ScaleRow whole = each.front();
    whole.efficiency = 0;
    for (const ScaleRow& one : each) {
      whole.efficiency_low = std::min(*whole.efficiency_low, *one.efficiency_low);
      whole.efficiency_high = std::max(*whole.efficiency_high, *one.efficiency_high);
      whole.efficiency += one.efficiency / static_cast<double>(each.size());
    }
    whole.speedup = whole.efficiency * point.gpus / baseline;
    if (point.rounded) {
      *whole.efficiency_low -= kPublishedRounding;
      *whole.efficiency_high += kPublishedRounding;
    }
    checked.push_back(std::move(whole));
  }
  return checked;
}

std::vector<ScaleRow> check_all_training() {
  std::vector<ScaleRow> all;
  for (const PublishedTraining& run : published_training()) {
    const std::vector<ScaleRow> rows = check_training(run);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::string training_text(std::span<const ScaleRow> rows) {
  std::string text;
  for (const RunGroup group : {RunGroup::held_out, RunGroup::seen}) {
    const RunTally tally = tally_of(rows, group);
    text += fmt::format(
        "Training runs that only check the model, {}\n\n{}\nAt the largest GPU count of each run, {} of {} "
        "lie in "
        "the range. The middle is off by {:.1f} points on average, with its sign by {:+.1f}.\n\n",
        group == RunGroup::held_out ? "held out" : "seen before its costs were set",
        published_runs_table(rows, group).text(), tally.inside, tally.runs, 100 * tally.error,
        100 * tally.signed_error);
  }
  return text;
}

std::vector<Input> training_sources() {
  std::vector<Input> sources;
  for (const PublishedTraining& run : published_training()) {
    std::string figures;
    for (const TrainingPoint& point : run.points)
      figures += fmt::format("{}{:.1f} % with {} GPUs", figures.empty() ? "" : ", ", 100 * point.efficiency,
                             point.gpus);
    sources.push_back({run.id, "published: " + figures, run.source});
  }
  return sources;
}

}  // namespace polyring
