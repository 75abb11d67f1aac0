// train: the scaling efficiency of synthetic training steps, beside the model's. It is shown, and not judged.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "bench/predict/compute.hpp"
#include "bench/predict/scaling.hpp"
#include "collectives/schedule/bound.hpp"
#include "models/throughput.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "train";
constexpr std::string_view kUsualModel = "resnet50";
/// The GPU of DDL's published results. It is taken where the hosts have no GPU, or one whose throughput
/// nobody has published.
constexpr std::string_view kUsualGpu = "P100";
constexpr int kUsualBatch = 32;
constexpr int kTurns = 2;
constexpr double kFewestSteps = 3;
constexpr double kMostSteps = 20;
/// A few steps take no longer, whatever the budget.
constexpr double kMostTurns = 30;

/// With the batch that is the nearest to the usual one; nothing where nobody has published any.
std::optional<Compute> compute_on(const std::string& gpu, const Model& model) {
  std::optional<int> batch;
  for (const Throughput& known : known_throughputs()) {
    if (!find_throughput(gpu, model.name, known.batch)) continue;
    if (!batch || std::abs(known.batch - kUsualBatch) < std::abs(*batch - kUsualBatch)) batch = known.batch;
  }
  if (!batch) return std::nullopt;
  ComputeOptions options;
  options.model = model.name;
  options.batch = *batch;
  options.gpu = gpu;
  options.precision = to_text(Precision::single);
  return options.resolve(model, {gpu, {}});
}

std::optional<Compute> compute_of_site(const Checking& checking, const Model& model) {
  const Cluster& hosts = checking.site.inventory.cluster;
  if (!hosts.groups.empty() && !hosts.host(0).gpus.empty())
    if (auto own = compute_on(hosts.host(0).gpus.front().model, model)) return own;
  return compute_on(std::string(kUsualGpu), model);
}

bool fill_unknown_links(Cluster& hosts, Bandwidth rate) {
  bool filled = false;
  for (HostGroup& group : hosts.groups) {
    for (Link& link : group.machine.links) {
      if (link.bandwidth.known()) continue;
      link.bandwidth = rate;
      link.assumed = filled = true;
    }
  }
  return filled;
}

/// What the hosts' links of unknown speed, such as memory, would have to be for the first host's allreduce to
/// take as long as it does; nothing where that cannot be told.
Bandwidth rate_inside_hosts(const Checking& checking) {
  constexpr Bandwidth kUnit{1e9};
  const RankGroup& ranks = checking.site.ranks.front();
  if (ranks.size() < 2) return {};
  Cluster host = checking.site.part(std::vector<int>{0});
  fill_unknown_links(host, kUnit);
  const GroupWork work{.algorithm = checking.options.algorithm,
                       .size = {std::min<std::uint64_t>(8 << 20, checking.options.most_payload.value)},
                       .time = {checking.options.turn.value / 2}};
  checking.progress("the links inside a host");
  std::vector<double> us;
  try {
    us = checking.measurer.allreduce({ranks}, work).front().us;
  } catch (const Error&) {  // other checks say why
  }
  if (us.empty()) return {};
  return {kUnit.value * allreduce_bound(host, work.size).time.value / (summarize(us).median * 1e-6)};
}

/// What the model says of the efficiency, half a sentence.
std::string modelled(const Checking& checking, const Model& model, const Compute& compute) {
  constexpr Bandwidth kNoLimit{1e15};
  ScalingCase scaling;
  scaling.machine = checking.site.part(checking.site.all_hosts());
  scaling.name = scaling.machine.name;
  scaling.model = model;
  scaling.compute = compute.step;
  scaling.policy = {BucketPolicy::Kind::fused, kTrainBucket};
  scaling.overlap = true;
  scaling.gpus = {checking.site.ranks_in_all()};
  constexpr std::string_view kCannot = "the model cannot say what it should be";
  if (scaling.machine.groups.empty()) return fmt::format("{}: nothing is known of the hosts", kCannot);
  std::string inside;
  if (Cluster all = scaling.machine; fill_unknown_links(all, kNoLimit)) {
    const Bandwidth rate = rate_inside_hosts(checking);
    fill_unknown_links(scaling.machine, rate.known() ? rate : kNoLimit);
    inside = rate.known() ? fmt::format(", with links inside hosts of {}, as an allreduce of {} shows",
                                        to_text(rate), checking.site.hosts.front())
                          : ", with links inside hosts that are no limit";
  }
  try {
    const double ms = model_scaling(scaling, checking.options.algorithm, {}).front().iteration_ms;
    return fmt::format("the model says {:.1f} %{}", 100 * compute.step.total().value / (ms * 1e-3), inside);
  } catch (const Error& error) {
    return fmt::format("{}: {}", kCannot, error.what());
  }
}

CheckRow not_done(const Checking& checking, const std::string& why, const std::string& remedy) {
  CheckRow row = row_of(checking, kName, checking.site.all_hosts());
  row.verdict = Verdict::skipped;
  row.why = why;
  row.remedy = remedy;
  return row;
}

CheckRow measured(const Checking& checking, const TrainWork& work, const Compute& compute) {
  CheckRow row = row_of(checking, kName, checking.site.all_hosts());
  row.subject = fmt::format("{} on {}", work.model, counted(checking.site.ranks_in_all(), "rank"));
  checking.progress(row.subject);
  const TrainTimes times = checking.measurer.train(work);
  std::vector<double> efficiencies;
  for (std::size_t step = 0; step < times.ms.size(); ++step)
    efficiencies.push_back(100 * times.alone_ms.at(step) / times.ms[step]);
  row.verdict = Verdict::shown;
  row.attempts = 1;
  row.quantity = "efficiency";
  row.unit = "%";
  row.value = timing(std::move(efficiencies));
  row.why = fmt::format(
      "Training scales to {} with an efficiency of {:.1f} %, and {}. A step computes for {}, {}.",
      counted(checking.site.ranks_in_all(), "rank"), row.value->median,
      modelled(checking, make_model(work.model), compute), to_text(compute.step.total()), compute.source);
  return row;
}

std::vector<CheckRow> run(const Checking& checking) {
  const CheckOptions& options = checking.options;
  const Site& site = checking.site;
  if (site.ranks_in_all() < 2) return {not_done(checking, "One rank has nobody to reduce with.", "")};
  if (options.device != DataDevice::cpu)
    return {not_done(checking, "Its steps are of data in the hosts' memory, and the job's data are on GPUs.",
                     "See polyring train --device cuda.")};
  const Model model = make_model(options.model.empty() ? kUsualModel : options.model);
  const Bytes gradients = bytes_of(model.total_elements(), ElementKind::float32);
  if (gradients.value > options.most_payload.value)
    return {not_done(
        checking,
        fmt::format("Gradients of {} take {}, and payloads up to {} fit into the memory that is left.",
                    model.name, to_text(gradients), to_text(options.most_payload)),
        "Train a smaller --model.")};
  const std::optional<Compute> compute = compute_of_site(checking, model);
  if (!compute)
    return {not_done(checking,
                     fmt::format("Nobody has published how fast a {} trains {}.", kUsualGpu, model.name),
                     fmt::format("Choose a --model whose throughput is known: {}.", throughput_choices()))};
  const Cluster all = site.part(site.all_hosts());
  const double bound = all.groups.empty() ? 0 : allreduce_bound(all, gradients).time.value;
  const Seconds step{2 * compute->step.total().value + (std::isfinite(bound) ? bound : 0)};
  const double fewest = (1 + kFewestSteps) * step.value / options.turn.value;
  if (fewest > kMostTurns || !checking.has_time(static_cast<int>(std::ceil(fewest))))
    return {not_done(checking,
                     fmt::format("A few steps of {} would take {} at least, for which there is no time.",
                                 model.name, to_text(Seconds{fewest * options.turn.value})),
                     "Give a larger --budget, or see polyring train.")};
  const double fitting = kTurns * options.turn.value / step.value - 1;
  const int steps = static_cast<int>(std::clamp(fitting, kFewestSteps, kMostSteps));
  return {measured(
      checking,
      {.model = model.name, .algorithm = options.algorithm, .compute = compute->step.total(), .steps = steps},
      *compute)};
}

int turns(const Site&, const CheckOptions&) { return kTurns; }

}  // namespace

const Check kTrain{kName, "how training scales, beside the model: shown, never judged", turns, {}, run};

}  // namespace polyring
