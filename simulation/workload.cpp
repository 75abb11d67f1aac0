#include "simulation/workload.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "simulation/flow_writer.hpp"
#include "simulation/switch_tree.hpp"
#include "simulation/too_many_transfers.hpp"

namespace polyring {
namespace {

constexpr std::size_t kMostFlows = std::size_t{1} << 23;

/// Whether every group has at least one element for each of its blocks, so that all transfers exist.
bool every_block_full(const Schedule& schedule) {
  return std::all_of(schedule.lanes.begin(), schedule.lanes.end(),
                     [&](const Lane& lane) { return lane.slice.count / lane.chunks >= schedule.ranks; });
}

/// The same lanes with one element for each block and one chunk: sizes as whole parts of a lane.
Schedule in_blocks(Schedule schedule) {
  Count next = 0;
  for (Lane& lane : schedule.lanes) {
    lane.slice = {next, schedule.ranks};
    lane.chunks = 1;
    next = lane.slice.end();
  }
  schedule.count = next;
  return schedule;
}

bool uses_switches(const Schedule& schedule) {
  return std::ranges::any_of(schedule.lanes, [](const Lane& lane) {
    return std::ranges::find(lane.stages, StageKind::in_switches, &Stage::kind) != lane.stages.end();
  });
}

class Builder {
 public:
  Builder(const Schedule& schedule, const Cluster& cluster, const Router& router, ElementSizes sizes,
          const Costs& costs)
      : schedule_(schedule),
        full_(every_block_full(schedule)),
        expanded_(full_ ? in_blocks(schedule) : schedule),
        sizes_(sizes),
        costs_(costs),
        writer_(workload_, cluster, router, costs_),
        received_(index(schedule.ranks)),
        held_(index(schedule.ranks)) {
    if (uses_switches(schedule)) switches_.emplace(cluster, router, costs_);
    workload_.actors = schedule.ranks + (switches_ ? switches_->switches() : 0);
    if (costs_.reduction.known()) {
      workload_.capacities.assign(index(schedule.ranks), costs_.reduction.value);
      workload_.names.assign(index(schedule.ranks), -1);
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
      const bool steady = full_ && lane.dimension_of(stage).pattern().steady() && steps > 0;
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
    bytes_per_element_ = bytes_per_element(lane, sizes_.in_message(combine, stage, step));
    std::fill(received_.begin(), received_.end(), 0.0);
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      sends_.clear();
      append_sends(expanded_, {lane_number, 0}, stage, step, rank, sends_);
      add_transfers(lane_number);
      refuse_too_many();
    }
    if (combine == Combine::reduce && costs_.reduction.known()) add_reductions();
    round.last_flow = static_cast<int>(workload_.flows.size());
    workload_.rounds.push_back(round);
  }

  /// Of the lane's expanded schedule, for elements of `size` bytes.
  double bytes_per_element(const Lane& lane, int size) const {
    const double of_chunk = static_cast<double>(lane.slice.count) * size / lane.chunks;
    return full_ ? of_chunk / schedule_.ranks : size;
  }

  void refuse_too_many() const {
    if (workload_.flows.size() <= kMostFlows) return;
    throw TooManyTransfers(fmt::format(
        "{} over {} ranks has too many transfers to simulate; use fewer ranks or another algorithm",
        schedule_.algorithm, schedule_.ranks));
  }

  void add_switches(int lane_number, int dimension) {
    const Lane& lane = schedule_.lanes[index(lane_number)];
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      const Slice slice = shared_slice(expanded_, {lane_number, 0}, dimension, rank);
      held_[index(rank)] = static_cast<double>(slice.count) * bytes_per_element(lane, sizes_.payload);
    }
    switches_->add_rounds(lane_number, held_, workload_, writer_);
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
      received_[index(to)] += bytes;
      writer_.add_message(lane, from, to, bytes);
    }
  }

  void add_reductions() {
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      if (received_[index(rank)] > 0) writer_.add_reduction(rank, received_[index(rank)], rank);
    }
  }

  const Schedule& schedule_;
  bool full_;
  Schedule expanded_;
  ElementSizes sizes_;
  Costs costs_;
  Workload workload_;
  FlowWriter writer_;
  std::optional<SwitchTree> switches_;
  std::vector<double> received_;  // bytes by rank, of the round being added
  std::vector<double> held_;      // by rank, before the switches
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
                       ElementSizes sizes, const Costs& costs) {
  refuse_other_size(schedule, cluster);
  return Builder(schedule, cluster, router, sizes, costs).run();
}

}  // namespace polyring
