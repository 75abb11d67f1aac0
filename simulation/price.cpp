#include "simulation/price.hpp"

#include <algorithm>
#include <cstddef>

#include "topology/error.hpp"

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Bytes on each resource, remembering which ones are in use.
class Loads {
 public:
  explicit Loads(int resources) : bytes_(index(resources)) {}

  void add(ResourceId resource, double bytes) {
    double& load = bytes_[index(resource)];
    if (load == 0) used_.push_back(resource);
    load += bytes;
  }
  double at(ResourceId resource) const { return bytes_[index(resource)]; }
  const std::vector<ResourceId>& used() const { return used_; }
  void clear() {
    for (const ResourceId resource : used_) bytes_[index(resource)] = 0;
    used_.clear();
  }

 private:
  std::vector<double> bytes_;
  std::vector<ResourceId> used_;
};

class Pricer {
 public:
  Pricer(const Schedule& schedule, const Router& router, int element_size)
      : schedule_(schedule),
        router_(router),
        element_size_(element_size),
        loads_(router.resource_count()),
        busy_(router.resource_count()) {}

  Price run(int window) {
    Price result;
    int stages = 0;
    int chunks = 1;
    for (const Lane& lane : schedule_.lanes) {
      stages = std::max(stages, stage_count(lane));
      chunks = std::max(chunks, lane.chunks);
    }
    double one_chunk = 0;
    for (int stage = 0; stage < stages; ++stage) {
      result.stages.push_back(price_stage(stage));
      one_chunk += result.stages.back().time.value;
    }
    double busiest = 0;
    for (const ResourceId resource : busy_.used()) {
      if (busy_.at(resource) > busiest) {
        busiest = busy_.at(resource);
        result.bottleneck = resource;
      }
    }
    result.time = {one_chunk + (chunks - 1) * std::max(busiest, one_chunk / window)};
    return result;
  }

 private:
  struct Crossing {
    double latency;
    std::size_t first;  // resources in routes_
    std::size_t last;
  };

  /// Chunk 0 of a lane is its largest, by at most one element.
  StagePrice price_stage(int stage) {
    StagePrice result;
    int steps = 0;
    bool steady = true;
    for (const Lane& lane : schedule_.lanes) {
      if (stage >= stage_count(lane)) continue;
      const Dimension& dimension = lane.dimensions[index(stage_at(lane, stage).dimension)];
      result.stage = stage_at(lane, stage);
      result.pattern = dimension.pattern().name();
      result.groups_of = dimension.size();
      const int in_lane = step_count(lane, stage);
      steady = steady && dimension.pattern().steady() && (steps == 0 || steps == in_lane) &&
               every_block_full(lane, result.stage.dimension);
      steps = std::max(steps, in_lane);
    }
    // The steps of a steady pattern differ by an element a block at most: one is priced for all.
    const int priced = steady ? std::min(steps, 1) : steps;
    const double repeats = steady ? steps : 1;
    double worst = 0;
    for (int step = 0; step < priced; ++step) {
      const auto [time, bottleneck, load_time] = price_step(stage, step, repeats);
      result.time.value += time * repeats;
      if (load_time > worst) {
        worst = load_time;
        result.bottleneck = bottleneck;
      }
    }
    return result;
  }

  /// Whether every group has at least one element for each of its blocks, so that all transfers exist.
  static bool every_block_full(const Lane& lane, int dimension) {
    Count least = lane.slice.count / lane.chunks;
    for (int passed = 0; passed <= dimension; ++passed) least /= lane.dimensions[index(passed)].size();
    return least > 0;
  }

  struct StepPrice {
    double time = 0;
    ResourceId bottleneck = -1;
    double load_time = 0;  // of the bottleneck
  };

  StepPrice price_step(int stage, int step, double repeats) {
    loads_.clear();
    crossings_.clear();
    routes_.clear();
    for (int lane = 0; lane < static_cast<int>(schedule_.lanes.size()); ++lane) {
      const Lane& at = schedule_.lanes[index(lane)];
      if (stage >= stage_count(at) || step >= step_count(at, stage)) continue;
      for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
        sends_.clear();
        append_sends(schedule_, {lane, 0}, stage, step, rank, sends_);
        for (const Transfer& transfer : sends_) add(transfer);
        refuse_too_many();
      }
    }
    StepPrice result;
    for (const Crossing& crossing : crossings_) {
      double longest = 0;
      for (std::size_t i = crossing.first; i < crossing.last; ++i) {
        const double time = loads_.at(routes_[i]) / router_.bandwidth(routes_[i]).value;
        longest = std::max(longest, time);
        if (time > result.load_time) {
          result.load_time = time;
          result.bottleneck = routes_[i];
        }
      }
      result.time = std::max(result.time, crossing.latency + longest);
    }
    for (const ResourceId resource : loads_.used()) {
      busy_.add(resource, repeats * loads_.at(resource) / router_.bandwidth(resource).value);
    }
    return result;
  }

  void add(const Transfer& transfer) {
    const std::size_t first = routes_.size();
    const Seconds latency = router_.route(transfer.source, transfer.destination, routes_);
    crossings_.push_back({latency.value, first, routes_.size()});
    const double bytes = static_cast<double>(transfer.slice.count) * element_size_;
    for (std::size_t i = first; i < routes_.size(); ++i) loads_.add(routes_[i], bytes);
  }

  void refuse_too_many() const {
    constexpr std::size_t kMostTransfers = std::size_t{1} << 23;
    if (crossings_.size() > kMostTransfers) {
      usage_error(
          "a step of {} over {} ranks has too many transfers to price; use fewer ranks or another algorithm",
          schedule_.algorithm, schedule_.ranks);
    }
  }

  const Schedule& schedule_;
  const Router& router_;
  int element_size_;
  Loads loads_;  // bytes, of the step being priced
  Loads busy_;   // seconds, of one chunk
  std::vector<Crossing> crossings_;
  std::vector<ResourceId> routes_;
  std::vector<Transfer> sends_;
};

}  // namespace

Price price(const Schedule& schedule, const Cluster& cluster, const Router& router, int element_size,
            int window) {
  if (cluster.ranks() != schedule.ranks) {
    usage_error("a schedule for {} ranks cannot run on a cluster of {}; make them equal", schedule.ranks,
                cluster.ranks());
  }
  return Pricer(schedule, router, element_size).run(window);
}

std::vector<PricedPlan> price_plans(std::string_view algorithm, const Cluster& cluster, const Router& router,
                                    Count count, int element_size, const PlanWishes& wishes) {
  const Bytes payload{static_cast<std::uint64_t>(count * element_size)};
  std::vector<PricedPlan> plans;
  for (Plan& plan : candidate_plans(algorithm, cluster, payload, wishes)) {
    const Schedule schedule = make_schedule(plan, cluster.ranks(), count, element_size);
    Price of_plan = price(schedule, cluster, router, element_size);
    plans.push_back({std::move(plan), std::move(of_plan)});
  }
  // Candidates come with few lanes and large chunks first.
  std::stable_sort(plans.begin(), plans.end(),
                   [](const PricedPlan& a, const PricedPlan& b) { return a.price.time < b.price.time; });
  return plans;
}

std::string unknown_speed(const Cluster& cluster) {
  for (const HostGroup& group : cluster.groups) {
    const Machine& host = group.machine;
    for (const Link& link : host.links) {
      if (!link.bandwidth.known()) {
        return fmt::format("{}: the speed of the {} link from {} to {} is unknown", host.name,
                           to_text(link.kind), host.device_name(link.from), host.device_name(link.to));
      }
    }
    for (const Nic& nic : host.nics) {
      if (cluster.host_count() > 1 && nic.up() && !nic.bandwidth().known()) {
        return fmt::format("{}: the speed of {} is unknown", host.name, nic.name);
      }
    }
  }
  return {};
}

}  // namespace polyring
