#include "simulation/workload.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "simulation/divided.hpp"
#include "simulation/equal_ranks.hpp"
#include "simulation/flow_writer.hpp"
#include "simulation/switch_tree.hpp"
#include "simulation/too_many_transfers.hpp"

namespace polyring {
namespace {

constexpr std::size_t kMostFlows = std::size_t{1} << 23;

class Builder {
 public:
  Builder(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
          const Costs& costs, bool classes)
      : schedule_(schedule),
        divided_(divided(schedule)),
        equal_(equal_ranks(schedule, divided_, cluster, router, classes)),
        sizes_(sizes),
        costs_(costs),
        writer_(workload_, cluster, router, costs_, equal_),
        received_(equal_.firsts().size()) {
    if (uses_switches(schedule)) switches_.emplace(cluster, router, costs_);
    const std::size_t actors = equal_.firsts().size();
    workload_.actors = static_cast<int>(actors) + (switches_ ? switches_->switches() : 0);
    workload_.all_differ = equal_.all_differ();
    if (costs_.reduction.known()) {
      workload_.capacities.assign(actors, costs_.reduction.value);
      workload_.names.assign(actors, -1);
    }
  }

  Workload run() {
    for (int lane = 0; lane < static_cast<int>(schedule_.lanes.size()); ++lane) add_course(lane);
    return std::move(workload_);
  }

 private:
  void add_course(int lane_number) {
    const Lane& lane = schedule_.lanes[index(lane_number)];
    Course course{lane.chunks, static_cast<int>(workload_.rounds.size()), 0};
    if (lane.slice.empty()) course.chunks = 0;
    for (int stage = 0; course.chunks > 0 && stage < stage_count(lane); ++stage) {
      const Stage at = lane.stages[index(stage)];
      if (at.kind == StageKind::in_switches) {
        add_switches(lane_number, at.dimension);
        continue;
      }
      const int steps = step_count(lane, stage);
      const bool steady = divided_.equal_blocks && lane.dimension_of(stage).pattern().steady() && steps > 0;
      for (int step = 0; step < steps;) {
        const int repeats = steady ? sizes_.repeats(stage, step, steps) : 1;
        add_round(lane_number, stage, step, repeats);
        step += repeats;
      }
    }
    course.last_round = static_cast<int>(workload_.rounds.size());
    workload_.courses.push_back(course);
  }

  void add_round(int lane_number, int stage, int step, int repeats) {
    const Lane& lane = schedule_.lanes[index(lane_number)];
    Round round{static_cast<int>(workload_.flows.size()), 0, repeats};
    const Combine combine = combine_of(lane.stages[index(stage)].kind);
    bytes_per_element_ = divided_.bytes_per_element(lane, sizes_.in_message(combine, stage, step));
    const bool joins = !equal_.all_differ() && lane.dimension_of(stage).pattern().cyclic();
    std::fill(received_.begin(), received_.end(), 0.0);
    for (const Rank rank : equal_.firsts()) {
      sends_.clear();
      append_sends(divided_.schedule, {lane_number, 0}, stage, step, rank, sends_);
      const std::size_t first = workload_.flows.size();
      add_transfers(lane_number);
      if (joins) writer_.join_equal(first);
      refuse_too_many();
    }
    if (combine == Combine::reduce && costs_.reduction.known()) add_reductions();
    round.last_flow = static_cast<int>(workload_.flows.size());
    workload_.rounds.push_back(round);
  }

  void refuse_too_many() const {
    if (workload_.flows.size() <= kMostFlows) return;
    throw TooManyTransfers(fmt::format(
        "{} over {} ranks has too many transfers to simulate; use fewer ranks or another algorithm",
        schedule_.algorithm, schedule_.ranks));
  }

  void add_switches(int lane_number, int dimension) {
    const double size = divided_.bytes_per_element(schedule_.lanes[index(lane_number)], sizes_.payload);
    std::vector<double> held;  // bytes by rank
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      const Slice slice = shared_slice(divided_.schedule, {lane_number, 0}, dimension, rank);
      held.push_back(static_cast<double>(slice.count) * size);
    }
    switches_->add_rounds(lane_number, held, workload_, writer_);
    refuse_too_many();
  }

  /// The slices that one rank sends to another in a step are one message.
  void add_transfers(int lane) {
    std::sort(sends_.begin(), sends_.end(),
              [](const Transfer& a, const Transfer& b) { return a.destination < b.destination; });
    for (std::size_t i = 0; i < sends_.size();) {
      Count count = 0;
      const Rank to = sends_[i].destination;
      const Rank from = sends_[i].source;
      for (; i < sends_.size() && sends_[i].destination == to; ++i) count += sends_[i].slice.count;
      const double bytes = static_cast<double>(count) * bytes_per_element_;
      received_[index(equal_.class_of(to))] += bytes;
      writer_.add_message(lane, from, to, bytes);
    }
  }

  void add_reductions() {
    for (int actor = 0; actor < static_cast<int>(received_.size()); ++actor) {
      if (received_[index(actor)] > 0) writer_.add_reduction(actor, received_[index(actor)], actor);
    }
  }

  const Schedule& schedule_;
  Divided divided_;
  EqualRanks equal_;
  ElementSizes sizes_;
  Costs costs_;
  Workload workload_;
  FlowWriter writer_;
  std::optional<SwitchTree> switches_;
  std::vector<double> received_;  // bytes by actor, of the round being added
  double bytes_per_element_ = 0;
  std::vector<Transfer> sends_;
};

void refuse_other_size(const Schedule& schedule, const Cluster& cluster) {
  if (cluster.ranks() == schedule.ranks) return;
  usage_error("a schedule for {} ranks cannot run on a cluster of {}; make them equal", schedule.ranks,
              cluster.ranks());
}

}  // namespace

std::uint64_t Workload::messages() const {
  std::uint64_t count = 0;
  for (const Course& course : courses) {
    for (int round = course.first_round; round < course.last_round; ++round) {
      const Round& at = rounds[index(round)];
      count += static_cast<std::uint64_t>(course.chunks) *
               static_cast<std::uint64_t>(at.last_flow - at.first_flow);
    }
  }
  return count;
}

std::vector<double> Workload::busy() const {
  std::vector<double> seconds(capacities.size());
  for (const Course& course : courses) {
    for (int round = course.first_round; round < course.last_round; ++round) {
      const Round& at = rounds[index(round)];
      for (int flow = at.first_flow; flow < at.last_flow; ++flow) {
        const Flow& of = flows[index(flow)];
        for (int use = of.first_use; use < of.last_use; ++use) {
          const Use& crossed = uses[index(use)];
          seconds[index(crossed.resource)] +=
              crossed.weight * of.bytes * at.repeats * course.chunks / capacities[index(crossed.resource)];
        }
      }
    }
  }
  return seconds;
}

Workload make_workload(const Schedule& schedule, const Cluster& cluster, const Router& router,
                       ElementSizes sizes, const Costs& costs, bool classes) {
  refuse_other_size(schedule, cluster);
  return Builder(schedule, cluster, router, sizes, costs, classes).run();
}

}  // namespace polyring
