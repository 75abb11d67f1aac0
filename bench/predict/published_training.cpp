#include "bench/predict/published_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/predict/published_training_json.hpp"
#include "bench/predict/step_model.hpp"
#include "reports/tables.hpp"
#include "topology/inventory/formats/machine_toml.hpp"

namespace polyring {
namespace {

using Json = nlohmann::json;

/// Half of a percent, to which some efficiencies are rounded.
constexpr double kRounding = 0.005;

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

CheckedPoint check_point(const PublishedTraining& run, const TrainingPoint& point,
                         const std::string& gradients) {
  const ScalingCase plain = case_of(run, gradients);
  const ScalingCase at = accumulated(plain, run, point.accumulation);
  const StepModel model(at, "nccl", {}, point.gpus);
  std::optional<ScalingCase> of_host;
  std::optional<StepModel> host;
  if (run.over_host) {
    of_host = accumulated(plain, run, run.points.front().accumulation);
    host.emplace(*of_host, "nccl", PlanConstraints{}, run.points.front().gpus);
  }
  const Interval interval = interval_of(model.ranges(), [&](const StepCosts& costs) {
    const double of_gpu = model.throughput(costs) / point.gpus;
    if (!host) return of_gpu / *run.single_gpu_rate;
    StepCosts there = costs;
    there.network = middle_of(host->ranges()).network;
    return of_gpu / (host->throughput(there) / run.points.front().gpus);
  });
  return {point.gpus, point.efficiency, interval.low, interval.middle, interval.high, interval.widest};
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

std::vector<CheckedPoint> check_training(const PublishedTraining& run) {
  std::vector<CheckedPoint> checked;
  for (const TrainingPoint& point : run.points) {
    if (run.over_host && point.gpus == run.points.front().gpus) continue;
    CheckedPoint whole;
    for (const std::string& gradients : run.gradients) {
      const CheckedPoint one = check_point(run, point, gradients);
      if (whole.gpus == 0) {
        whole = one;
        whole.middle = 0;
      }
      whole.low = std::min(whole.low, one.low);
      whole.high = std::max(whole.high, one.high);
      whole.middle += one.middle / static_cast<double>(run.gradients.size());
    }
    if (point.rounded) {
      whole.low -= kRounding;
      whole.high += kRounding;
    }
    checked.push_back(whole);
  }
  return checked;
}

TrainingCheck check_all_training(bool held_out) {
  Table table({{"", "training run", "", Align::left},
               {"", "framework", "", Align::left, 1},
               {"", "gpus", "", Align::right},
               {"", "published", "%", Align::right},
               {"modelled", "from", "%", Align::right},
               {"modelled", "middle", "%", Align::right},
               {"modelled", "to", "%", Align::right},
               {"", "", "", Align::left},
               {"", "most of the range comes from", "", Align::left, 2}});
  TrainingCheck check;
  for (const PublishedTraining& run : published_training()) {
    if (run.held_out != held_out) continue;
    const std::vector<CheckedPoint> points = check_training(run);
    for (const CheckedPoint& point : points) {
      const auto percent = [](double part) { return fmt::format("{:.1f}", 100 * part); };
      table.add_row({run.id, run.costs, fmt::format("{}", point.gpus), percent(point.published),
                     percent(point.low), percent(point.middle), percent(point.high),
                     point.inside() ? "inside" : "outside", point.widest});
    }
    const CheckedPoint& last = points.back();
    ++check.tally.runs;
    check.tally.inside += last.inside() ? 1 : 0;
    check.tally.error += std::abs(last.middle - last.published);
    check.tally.signed_error += last.middle - last.published;
  }
  check.tally.error /= check.tally.runs;
  check.tally.signed_error /= check.tally.runs;
  check.table = table.text();
  return check;
}

}  // namespace polyring
