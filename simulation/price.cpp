#include "simulation/price.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/divided.hpp"
#include "simulation/equal_ranks.hpp"
#include "simulation/too_many_transfers.hpp"

namespace polyring {
namespace {

/// The resources that a schedule crosses, the first of each class, numbered as they come.
class Crossed {
 public:
  explicit Crossed(const Router& router) : router_(router), numbers_(index(router.resource_count()), -1) {}

  int number(ResourceId resource) {
    int& number = numbers_[index(resource)];
    if (number < 0) {
      number = static_cast<int>(all_.size());
      all_.push_back({resource, router_.bandwidth(resource).value});
    }
    return number;
  }

  struct Resource {
    ResourceId id = -1;
    double bandwidth = 0;
    double load = 0;  // bytes, of the step being priced
    double busy = 0;  // s, of one chunk
  };
  std::vector<Resource>& all() { return all_; }

 private:
  const Router& router_;
  std::vector<int> numbers_;  // by ResourceId
  std::vector<Resource> all_;
};

/// Whether it is by more than rounding: of equal resources the first is the bottleneck.
bool longer(double time, double other) { return time > other * (1 + 1e-12); }

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
  struct Busy {
    ResourceId resource = -1;
    double seconds = 0;
  };
  std::vector<Busy> busy;  // of those that are crossed, by resource

  Price price(double scale, int chunks, int window) const {
    Price result;
    double one_chunk = 0;
    for (const StageShape& shape : stages) {
      result.stages.push_back(shape.stage);
      for (const StepShape& step : shape.steps) result.stages.back().time.value += step.time(scale);
      one_chunk += result.stages.back().time.value;
    }
    double busy_for = 0;
    for (const Busy& resource : busy) {
      if (!longer(scale * resource.seconds, busy_for)) continue;
      busy_for = scale * resource.seconds;
      result.bottleneck = resource.resource;
    }
    result.time = {one_chunk + (chunks - 1) * std::max(busy_for, one_chunk / window)};
    return result;
  }
};

bool same_stages(const Lane& a, const Lane& b) {
  return a.dimensions == b.dimensions && a.stages == b.stages;
}

/// Whether all lanes of both would be priced as one, and as the same one.
bool same_joined(const Schedule& a, const Schedule& b) {
  const auto same = [&](const Lane& lane) { return same_stages(lane, a.lanes.front()); };
  return a.count == b.count && std::ranges::all_of(a.lanes, same) && std::ranges::all_of(b.lanes, same) &&
         divided(a).equal_blocks && divided(b).equal_blocks;
}

class Pricer {
 public:
  Pricer(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
         bool classes)
      : schedule_(schedule),
        divided_(divided(schedule)),
        equal_(equal_ranks(schedule, divided_, cluster, router, classes)),
        router_(router),
        sizes_(sizes),
        crossed_(router) {
    join_lanes();
  }

  Shape run() {
    int stages = 0;
    for (const Lane& lane : schedule_.lanes) stages = std::max(stages, stage_count(lane));
    for (int stage = 0; stage < stages; ++stage) add_stage(stage);
    for (const Crossed::Resource& resource : crossed_.all())
      shape_.busy.push_back({resource.id, resource.busy});
    std::ranges::sort(shape_.busy, {}, &Shape::Busy::resource);
    return std::move(shape_);
  }

 private:
  struct Routed {
    double latency;
    std::uint32_t last;  // of crossings_; its first follows the last of the transfer before
  };

  /// With too few elements to be divided at will, chunk 0 of a lane is its largest, by one element at most.
  void add_stage(int stage) {
    StageShape result;
    int steps = 0;
    bool steady = true;
    for (const Lane& lane : divided_.schedule.lanes) {
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
      if (longer(load_time, worst)) {
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
    std::vector<Crossed::Resource>& resources = crossed_.all();
    for (const int number : loaded_) resources[index(number)].load = 0;
    loaded_.clear();
    transfers_.clear();
    crossings_.clear();
    for (int lane = 0; lane < static_cast<int>(schedule_.lanes.size()); ++lane) {
      if (stands_for_[index(lane)].empty()) continue;
      const Lane& at = divided_.schedule.lanes[index(lane)];
      if (stage >= stage_count(at) || step >= step_count(at, stage)) continue;
      for (const Rank rank : equal_.firsts()) {
        sends_.clear();
        append_sends(divided_.schedule, {lane, 0}, stage, step, rank, sends_);
        for (const Transfer& transfer : sends_) add(transfer);
        refuse_too_many();
      }
    }
    Bottleneck bottleneck;
    std::uint32_t i = 0;
    for (const Routed& transfer : transfers_) {
      double longest = 0;
      for (; i < transfer.last; ++i) {
        const Crossed::Resource& resource = resources[index(crossings_[i])];
        const double time = resource.load / resource.bandwidth;
        longest = std::max(longest, time);
        if (longer(time, bottleneck.load_time)) bottleneck = {resource.id, time};
      }
      shape.add({transfer.latency, longest});
    }
    for (const int number : loaded_) {
      Crossed::Resource& resource = resources[index(number)];
      resource.busy += shape.repeats * resource.load / resource.bandwidth;
    }
    return bottleneck;
  }

  void add(const Transfer& transfer) {
    route_.clear();
    const Seconds latency = router_.route(transfer.source, transfer.destination, route_);
    const int size = sizes_.in_message(transfer.combine, transfer.stage, transfer.step);
    double bytes = 0;
    for (const int lane : stands_for_[index(transfer.stream.lane)])
      bytes += divided_.bytes_per_element(schedule_.lanes[index(lane)], size);
    bytes *= static_cast<double>(transfer.slice.count);
    for (const Crossing& crossing : route_) {
      const EqualRanks::Met met = equal_.met(crossing.resource);
      const int number = crossed_.number(met.first);
      double& load = crossed_.all()[index(number)].load;
      if (load == 0) loaded_.push_back(number);
      load += bytes * crossing.share * met.times;
      crossings_.push_back(number);
    }
    transfers_.push_back({latency.value, static_cast<std::uint32_t>(crossings_.size())});
  }

  /// Lanes that differ in the length of their blocks alone are priced as one.
  void join_lanes() {
    const std::vector<Lane>& lanes = schedule_.lanes;
    stands_for_.resize(lanes.size());
    for (int lane = 0; lane < static_cast<int>(lanes.size()); ++lane) {
      int first = divided_.equal_blocks ? 0 : lane;
      while (!same_stages(lanes[index(first)], lanes[index(lane)])) ++first;
      stands_for_[index(first)].push_back(lane);
    }
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
  Divided divided_;
  EqualRanks equal_;
  const Router& router_;
  ElementSizes sizes_;
  std::vector<std::vector<int>>
      stands_for_;          // by lane, the lanes that are priced with it: none, or it and others
  std::size_t priced_ = 0;  // transfers of the steps before
  Crossed crossed_;
  Shape shape_;
  // Of the step being priced:
  std::vector<Routed> transfers_;
  std::vector<int> crossings_;  // numbers of crossed_
  std::vector<int> loaded_;     //
  std::vector<Crossing> route_;
  std::vector<Transfer> sends_;
};

/// Of one chunk of a schedule for the cluster's ranks.
Shape shape_of(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
               bool classes = true) {
  if (cluster.ranks() != schedule.ranks) {
    usage_error("a schedule for {} ranks cannot run on a cluster of {}; make them equal", schedule.ranks,
                cluster.ranks());
  }
  return Pricer(schedule, cluster, router, sizes, classes).run();
}

/// To 1 part in 10^7, so that rounding errors tell no plans apart.
float rounded(const PricedPlan& plan) { return static_cast<float>(plan.price.time.value); }

/// Of the lane that has most.
int chunks_of(const Schedule& schedule) {
  int chunks = 1;
  for (const Lane& lane : schedule.lanes) chunks = std::max(chunks, lane.chunks);
  return chunks;
}

}  // namespace

Price price(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
            int window, bool classes) {
  if (window < 1) usage_error("a window of {} chunks is impossible; give 1 or more", window);
  return shape_of(schedule, cluster, router, sizes, classes).price(1, chunks_of(schedule), window);
}

std::vector<Seconds> busy_times(const Schedule& schedule, const Cluster& cluster, const Router& router,
                                ElementSizes sizes) {
  const int chunks = chunks_of(schedule);
  std::vector<Seconds> times(index(router.resource_count()));
  for (const Shape::Busy& busy : shape_of(schedule, cluster, router, sizes, false).busy)
    times[index(busy.resource)] = {chunks * busy.seconds};
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
  std::optional<Plan> whole;  // whose shape it is
  std::optional<Schedule> shaped;
  std::optional<Shape> shape;    // nothing: too large
  std::exception_ptr too_large;  // of the first
  std::string unknown;
  for (Plan& plan : plans) {
    const int chunks = chunks_of(make_schedule(plan, cluster.ranks(), count, sizes.payload));
    Plan unchunked = plan;
    unchunked.chunk = {};
    if (unchunked != whole) {
      whole = std::move(unchunked);
      Schedule schedule = make_schedule(*whole, cluster.ranks(), count, sizes.payload);
      const bool same = shape && same_joined(*shaped, schedule);
      shaped = std::move(schedule);
      try {
        if (!same) {
          shape = shape_of(*shaped, cluster, router, sizes);
          unknown = unknown_speed(*shaped, router);
        }
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
  // Candidates of one shape come with large chunks first.
  std::stable_sort(plans.begin(), plans.end(), [](const PricedPlan& a, const PricedPlan& b) {
    return std::tuple(!a.unknown.empty(), rounded(a), a.plan.lanes) <
           std::tuple(!b.unknown.empty(), rounded(b), b.plan.lanes);
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
