#include "bench/plans/job_planner.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "bench/cli/output.hpp"
#include "bench/record/calibration_file.hpp"
#include "bench/record/record.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "simulation/price_planner.hpp"
#include "simulation/topology_planner.hpp"
#include "topology/inventory/formats/read_inventory.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// Nothing where prices cannot be told: `why`.
std::optional<Cluster> typical_cluster(JobHosts hosts, std::string& why) {
  try {
    const bool gpus = on_gpus(hosts.placement);
    return with_typical_speeds(with_ranks_of(std::move(hosts.cluster), hosts.placement, "this job"), gpus,
                               why);
  } catch (const Error& error) {
    why = error.what();  // such as ranks that are not numbered host after host
    return std::nullopt;
  }
}

bool knows_nics(const Cluster& cluster) {
  return std::ranges::all_of(cluster.groups, [](const HostGroup& group) {
    return std::ranges::all_of(group.machine.nics,
                               [](const Nic& nic) { return !nic.up() || nic.bandwidth().known(); });
  });
}

/// Of the links between GPUs no source tells the latencies: those that are not fitted are typical.
Cluster calibrated_cluster(const Calibration& calibration, const std::string& file, JobHosts hosts) {
  Cluster cluster = with_ranks_of(std::move(hosts.cluster), hosts.placement, "this job");
  cluster = calibrated(std::move(cluster), calibration);
  if (on_gpus(hosts.placement)) cluster = with_typical_speeds_beside(calibration, std::move(cluster), true);
  const Router router(cluster);
  // A fit to messages between hosts includes the ways to their NICs. It knows a NIC's rate as a share of what
  // the topology states, so that this must be known.
  const bool network_fitted = calibration.find(LinkClass::network) != nullptr && knows_nics(cluster);
  const std::string unknown = network_fitted ? router.unknown_speed_in_hosts() : router.unknown_speed();
  if (!unknown.empty()) {
    usage_error(
        "'{}' does not say how fast messages between these ranks are: {}; calibrate on runs that cross "
        "the same kinds of links, or leave --calibration out",
        file, unknown);
  }
  return cluster;
}

Cluster read_machine(const std::string& machine, int ranks) {
  const std::vector<std::string> names = strings(preset_names());
  if (const auto known = known_name(machine, names)) return with_ranks(preset(*known, 1), ranks);
  std::error_code unreadable;
  if (!std::filesystem::exists(machine, unreadable) && !unreadable) {
    usage_error(
        "'{}' is neither a machine known by name nor a file{} choose from {}, or name a file that polyring "
        "probe reads",
        machine, did_you_mean(machine, names), fmt::join(names, ", "));
  }
  const std::array<std::filesystem::path, 1> files{machine};
  Inventory hosts = read_inventory(files);
  for (const std::string& note : hosts.notes) warn(note);
  return with_ranks(hosts.cluster, ranks);
}

constexpr char kBetween = '|';

std::string encoded(const PlanChoice& choice) {
  const Plan& plan = choice.plan;
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}{0}{5}{0}{6}{0}{7}", kBetween, plan.algorithm,
                     dims_text(plan.dims), fmt::join(plan.patterns, "+"), plan.lanes, plan.chunk.value,
                     plan.orders.empty() ? "" : orders_text(plan.orders), static_cast<int>(choice.source));
}

template <typename Number>
Number number(const std::string& text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

PlanChoice decoded(std::string_view text) {
  const std::vector<std::string> parts = split(text, kBetween);
  Plan plan{parts.at(0), parse_dims(parts.at(1)), split(parts.at(2), '+'), number<int>(parts.at(3)),
            Bytes{number<std::uint64_t>(parts.at(4))}};
  if (!parts.at(5).empty()) plan.orders = parse_orders(parts[5]);
  return {std::move(plan), static_cast<PlanSource>(number<int>(parts.at(6)))};
}

}  // namespace

JobPlanner::JobPlanner(const std::string& calibration, const World& world,
                       const std::optional<JobHosts>& gpus)
    : world_(&world) {
  const bool links_differ = world.nodes() > 1 || (gpus && world.size() > 1);
  if (calibration.empty() && !links_differ) return;
  if (calibration.empty() && world.size() > kMostPricedRanks) {
    why_no_prices_ = fmt::format("they take too long to price for more than {} ranks", kMostPricedRanks);
    return;
  }
  JobHosts hosts = gpus ? *gpus : JobHosts{host_memory_cluster(world), placement_of(world)};
  std::optional<Cluster> cluster;
  on_root(world, [&] {
    if (calibration.empty()) {
      cluster = typical_cluster(std::move(hosts), why_no_prices_);
      return;
    }
    const CalibrationRecord record = read_calibration(calibration);
    check_device(record, gpus ? DataDevice::cuda : DataDevice::cpu, calibration);
    // One rank sends nothing that has a price.
    if (world.size() > 1) cluster = calibrated_cluster(record.calibration, calibration, std::move(hosts));
  });
  if (world.broadcast(cluster ? 1 : 0) == 1) calibration_ = calibration;
  if (cluster) planner_ = std::make_unique<TopologyPlanner>(*std::move(cluster), gpus.has_value());
}

JobPlanner JobPlanner::for_machine(const std::string& machine, const World& world) {
  JobPlanner job(world);
  on_root(world, [&] {
    job.machine_ = read_machine(machine, world.size());
    job.planner_ = std::make_unique<PricePlanner>(*job.machine_, PricePlanner::Trust::model);
  });
  return job;
}

Problem JobPlanner::problem(const std::string& algorithm, const Communicator& communicator,
                            const CollectiveOf& what) const {
  if (machine_) return modelled_problem(algorithm, *machine_, what.count, what.sizes());
  return communicator.problem(algorithm, what);
}

PlanChoice JobPlanner::choose(const Problem& problem, const PlanConstraints& constraints) const {
  std::string choice;
  on_root(*world_, [&] { choice = encoded(planner_->choose(problem, constraints)); });
  const auto everyones = world_->allgather(std::as_bytes(std::span(choice)));
  const auto& roots = everyones.front();
  return decoded({reinterpret_cast<const char*>(roots.data()), roots.size()});
}

}  // namespace polyring
