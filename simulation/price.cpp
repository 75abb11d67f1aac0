#include "simulation/price.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/too_many_transfers.hpp"

namespace polyring {
namespace {

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

/// What transfers of a step need, those left out that another one outlasts whatever the size of a chunk.
struct StepShape {
  struct Transfers {
    double latency = 0;
    double moving = 0;  // of one chunk, on the busiest resource that they cross
  };
  double repeats = 1;
  std::vector<Transfers> slowest;

  void add(Transfers transfers) {
    const auto outlasts = [](const Transfers& a, const Transfers& b) {
      return a.latency >= b.latency && a.moving >= b.moving;
    };
    for (const Transfers& other : slowest) {
      if (outlasts(other, transfers)) return;
    }
    std::erase_if(slowest, [&](const Transfers& other) { return outlasts(transfers, other); });
    slowest.push_back(transfers);
  }

  double time(double scale) const {
    double longest = 0;
    for (const Transfers& transfers : slowest)
      longest = std::max(longest, transfers.latency + scale * transfers.moving);
    return repeats * longest;
  }
};

struct StageShape {
  StagePrice stage;  // its time is not filled in
  std::vector<StepShape> steps;
};

/// All that the price of one chunk depends on, and so that of a chunk of any other size.
struct Shape {
  std::vector<StageShape> stages;
  std::vector<double> busy;  // seconds, by resource

  Price price(double scale, int chunks, int window) const {
    Price result;
    double one_chunk = 0;
    for (const StageShape& shape : stages) {
      result.stages.push_back(shape.stage);
      for (const StepShape& step : shape.steps) result.stages.back().time.value += step.time(scale);
      one_chunk += result.stages.back().time.value;
    }
    const auto busiest = std::max_element(busy.begin(), busy.end());
    double busy_for = 0;
    if (busiest != busy.end() && *busiest > 0) {
      busy_for = scale * *busiest;
      result.bottleneck = static_cast<ResourceId>(busiest - busy.begin());
    }
    result.time = {one_chunk + (chunks - 1) * std::max(busy_for, one_chunk / window)};
    return result;
  }
};

class Pricer {
 public:
  Pricer(const Schedule& schedule, const Router& router, ElementSizes sizes)
      : schedule_(schedule), router_(router), sizes_(sizes), loads_(router.resource_count()) {
    shape_.busy.resize(index(router.resource_count()));
  }

  Shape run() {
    int stages = 0;
    for (const Lane& lane : schedule_.lanes) stages = std::max(stages, stage_count(lane));
    for (int stage = 0; stage < stages; ++stage) add_stage(stage);
    return std::move(shape_);
  }

 private:
  struct Routed {
    double latency;
    std::size_t first;  // of routes_
    std::size_t last;
  };

  /// Chunk 0 of a lane is its largest, by at most one element.
  void add_stage(int stage) {
    StageShape result;
    int steps = 0;
    bool steady = true;
    for (const Lane& lane : schedule_.lanes) {
      if (stage >= stage_count(lane)) continue;
      const Stage at = lane.stages[index(stage)];
      assert(at.kind != StageKind::in_switches);  // they are simulated, and have no price
      const Dimension& dimension = lane.dimension_of(stage);
      result.stage.stage = at;
      result.stage.pattern = dimension.pattern().name();
      result.stage.groups_of = dimension.size();
      const int in_lane = step_count(lane, stage);
      steady = steady && dimension.pattern().steady() && (steps == 0 || steps == in_lane) &&
               every_block_full(lane, at.dimension);
      steps = std::max(steps, in_lane);
    }
    // The steps of a steady pattern differ by an element a block at most: one is priced for all of the same
    // size.
    double worst = 0;
    for (int step = 0, repeats = 1; step < steps; step += repeats) {
      repeats = steady ? sizes_.repeats(stage, step, steps) : 1;
      result.steps.push_back({static_cast<double>(repeats), {}});
      const auto [bottleneck, load_time] = fill_step(result.steps.back(), stage, step);
      priced_ += transfers_.size();
      if (load_time > worst) {
        worst = load_time;
        result.stage.bottleneck = bottleneck;
      }
    }
    shape_.stages.push_back(std::move(result));
  }

  /// Whether every group has at least one element for each of its blocks, so that all transfers exist.
  static bool every_block_full(const Lane& lane, int dimension) {
    Count least = lane.slice.count / lane.chunks;
    for (int passed = 0; passed <= dimension; ++passed) least /= lane.dimensions[index(passed)].size();
    return least > 0;
  }

  struct Bottleneck {
    ResourceId resource = -1;
    double load_time = 0;
  };

  Bottleneck fill_step(StepShape& shape, int stage, int step) {
    loads_.clear();
    transfers_.clear();
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
    Bottleneck bottleneck;
    for (const Routed& transfer : transfers_) {
      double longest = 0;
      for (std::size_t i = transfer.first; i < transfer.last; ++i) {
        const ResourceId resource = routes_[i].resource;
        const double time = loads_.at(resource) / router_.bandwidth(resource).value;
        longest = std::max(longest, time);
        if (time > bottleneck.load_time) bottleneck = {resource, time};
      }
      shape.add({transfer.latency, longest});
    }
    for (const ResourceId resource : loads_.used()) {
      shape_.busy[index(resource)] += shape.repeats * loads_.at(resource) / router_.bandwidth(resource).value;
    }
    return bottleneck;
  }

  void add(const Transfer& transfer) {
    const std::size_t first = routes_.size();
    const Seconds latency = router_.route(transfer.source, transfer.destination, routes_);
    transfers_.push_back({latency.value, first, routes_.size()});
    const double bytes = static_cast<double>(transfer.slice.count) *
                         sizes_.in_message(transfer.combine, transfer.stage, transfer.step);
    for (std::size_t i = first; i < routes_.size(); ++i)
      loads_.add(routes_[i].resource, bytes * routes_[i].share);
  }

  /// In one step they are in memory together, and all steps take their time.
  void refuse_too_many() const {
    constexpr std::size_t kMostInStep = std::size_t{1} << 23;
    constexpr std::size_t kMost = 2 * kMostInStep;
    if (transfers_.size() > kMostInStep || priced_ + transfers_.size() > kMost) {
      throw TooManyTransfers(fmt::format(
          "{} over {} ranks has too many transfers to price; use fewer ranks or another algorithm",
          schedule_.algorithm, schedule_.ranks));
    }
  }

  const Schedule& schedule_;
  const Router& router_;
  ElementSizes sizes_;
  std::size_t priced_ = 0;  // transfers of the steps before
  Loads loads_;             // bytes, of the step being priced
  Shape shape_;
  std::vector<Routed> transfers_;
  std::vector<Crossing> routes_;
  std::vector<Transfer> sends_;
};

/// Of one chunk of a schedule for the cluster's ranks.
Shape shape_of(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes) {
  if (cluster.ranks() != schedule.ranks) {
    usage_error("a schedule for {} ranks cannot run on a cluster of {}; make them equal", schedule.ranks,
                cluster.ranks());
  }
  return Pricer(schedule, router, sizes).run();
}

/// Of the lane that has most.
int chunks_of(const Schedule& schedule) {
  int chunks = 1;
  for (const Lane& lane : schedule.lanes) chunks = std::max(chunks, lane.chunks);
  return chunks;
}

}  // namespace

Price price(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
            int window) {
  if (window < 1) usage_error("a window of {} chunks is impossible; give 1 or more", window);
  return shape_of(schedule, cluster, router, sizes).price(1, chunks_of(schedule), window);
}

std::vector<Seconds> busy_times(const Schedule& schedule, const Cluster& cluster, const Router& router,
                                ElementSizes sizes) {
  const int chunks = chunks_of(schedule);
  std::vector<Seconds> times;
  for (const double busy : shape_of(schedule, cluster, router, sizes).busy) times.push_back({chunks * busy});
  return times;
}

std::string unknown_speed(const Schedule& schedule, const Router& router) {
  if (router.unknown_speed().empty()) return {};
  std::vector<Transfer> sends;
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const Lane& at = schedule.lanes[index(lane)];
    for (int stage = 0; stage < stage_count(at); ++stage) {
      // The steps of a steady pattern are between the same ranks.
      const bool steady = at.dimension_of(stage).pattern().steady();
      const int steps = steady ? std::min(step_count(at, stage), 1) : step_count(at, stage);
      for (int step = 0; step < steps; ++step) {
        for (Rank rank = 0; rank < schedule.ranks; ++rank)
          append_sends(schedule, {lane, 0}, stage, step, rank, sends);
        for (const Transfer& transfer : sends) {
          std::string unknown = router.unknown_speed(transfer.source, transfer.destination);
          if (!unknown.empty()) return unknown;
        }
        sends.clear();
      }
    }
  }
  return {};
}

std::vector<PricedPlan> price_each(std::vector<Plan> plans, const Cluster& cluster, const Router& router,
                                   Count count, ElementSizes sizes) {
  std::vector<PricedPlan> priced;
  std::optional<Plan> whole;     // whose shape it is
  std::optional<Shape> shape;    // nothing: too large
  std::exception_ptr too_large;  // of the first
  std::string unknown;
  for (Plan& plan : plans) {
    const int chunks = chunks_of(make_schedule(plan, cluster.ranks(), count, sizes.payload));
    Plan unchunked = plan;
    unchunked.chunk = {};
    if (unchunked != whole) {
      whole = std::move(unchunked);
      const Schedule schedule = make_schedule(*whole, cluster.ranks(), count, sizes.payload);
      try {
        shape = shape_of(schedule, cluster, router, sizes);
        unknown = unknown_speed(schedule, router);
      } catch (const TooManyTransfers&) {
        shape.reset();
        if (!too_large) too_large = std::current_exception();
      }
    }
    if (shape)
      priced.push_back({std::move(plan), shape->price(1.0 / chunks, chunks, kDefaultWindow), unknown});
  }
  if (priced.empty() && too_large) std::rethrow_exception(too_large);
  return priced;
}

std::vector<PricedPlan> price_plans(const Problem& problem, const Cluster& cluster, const Router& router,
                                    const PlanConstraints& constraints) {
  std::vector<PricedPlan> plans = price_each(candidate_plans(problem, cluster, constraints), cluster, router,
                                             problem.count, problem.sizes);
  // Candidates come with few lanes and large chunks first.
  std::stable_sort(plans.begin(), plans.end(), [](const PricedPlan& a, const PricedPlan& b) {
    return std::tuple(!a.unknown.empty(), a.price.time) < std::tuple(!b.unknown.empty(), b.price.time);
  });
  return plans;
}

std::size_t fewest_chunks(const std::vector<PricedPlan>& plans, int ranks, Count count, ElementSizes sizes) {
  constexpr double kAsGood = 1.05;
  const auto chunks = [&](const Plan& plan) {
    int sum = 0;
    for (const Lane& lane : make_schedule(plan, ranks, count, sizes.payload).lanes) sum += lane.chunks;
    return sum;
  };
  std::size_t best = 0;
  int fewest = chunks(plans.front().plan);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (plans[i].price.time.value > kAsGood * plans.front().price.time.value) break;
    if (!plans[i].unknown.empty() && plans.front().unknown.empty()) break;
    const int of_plan = chunks(plans[i].plan);
    if (of_plan >= fewest) continue;
    fewest = of_plan;
    best = i;
  }
  return best;
}

}  // namespace polyring
