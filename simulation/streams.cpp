#include "simulation/streams.hpp"

#include <algorithm>
#include <cassert>

#include "base/index.hpp"

namespace polyring {
namespace {

/// Calls with each flow between actors, its course and the round of it; earlier rounds of all courses first.
template <typename Do>
void for_each_transfer(const Workload& workload, Do&& act) {
  int most = 0;
  for (const Course& course : workload.courses) most = std::max(most, course.last_round - course.first_round);
  for (int step = 0; step < most; ++step) {
    for (int course = 0; course < static_cast<int>(workload.courses.size()); ++course) {
      const int round = workload.courses[index(course)].first_round + step;
      if (round >= workload.courses[index(course)].last_round) continue;
      const Round& at = workload.rounds[index(round)];
      for (int flow = at.first_flow; flow < at.last_flow; ++flow) {
        if (!workload.flows[index(flow)].local) act(flow, course, step);
      }
    }
  }
}

}  // namespace

Streams::Streams(const Workload& workload, int window)
    : workload_(workload), next_(index(workload.actors)), in_flight_(index(workload.actors)) {
  // As the executor: lanes take turns.
  int most = 0;
  for (const Course& course : workload.courses) most = std::max(most, course.chunks);
  for (int chunk = 0; chunk < most; ++chunk) {
    for (int course = 0; course < static_cast<int>(workload.courses.size()); ++course) {
      if (chunk < workload.courses[index(course)].chunks) order_.push_back(course);
    }
  }
  most_in_flight_ = std::min(order_.size(), workload.courses.size() * index(window));
  shifted_ = std::any_of(workload.flows.begin(), workload.flows.end(),
                         [](const Flow& flow) { return flow.shift != 0; });
  add_turns();
  add_reductions();
}

std::size_t Streams::slot(int course, int actor) const {
  return index(course) * index(workload_.actors) + index(actor);
}

/// Each actor's parts side by side, so that what it does not take part in costs nothing.
void Streams::add_turns() {
  std::vector<int> first_part(workload_.courses.size() * index(workload_.actors) + 1);
  for_each_transfer(workload_, [&](int flow, int course, int) {
    const Flow& of = workload_.flows[index(flow)];
    ++first_part[slot(course, of.source) + 1];
    ++first_part[slot(course + of.shift, of.destination) + 1];
  });
  for (std::size_t i = 1; i < first_part.size(); ++i) first_part[i] += first_part[i - 1];
  parts_.resize(index(first_part.back()));
  std::vector<int> round_of_part(parts_.size());
  std::vector<int> next(first_part.begin(), first_part.end() - 1);
  for_each_transfer(workload_, [&](int flow, int course, int step) {
    const Flow& of = workload_.flows[index(flow)];
    const auto add = [&](int in_course, int actor, bool receives) {
      const int part = next[slot(in_course, actor)]++;
      parts_[index(part)] = {flow, of.shift, receives};
      round_of_part[index(part)] = workload_.courses[index(in_course)].first_round + step;
    };
    add(course, of.source, false);
    add(course + of.shift, of.destination, true);
  });
  group_turns(first_part, round_of_part);
}

void Streams::group_turns(const std::vector<int>& first_part, const std::vector<int>& round_of_part) {
  for (std::size_t at = 0; at + 1 < first_part.size(); ++at) {
    first_turn_.push_back(static_cast<int>(turns_.size()));
    for (int part = first_part[at]; part < first_part[at + 1]; ++part) {
      const int round = round_of_part[index(part)];
      if (part == first_part[at] || turns_.back().round != round)
        turns_.push_back({round, workload_.rounds[index(round)].repeats, part, part, -1});
      turns_.back().last_part = part + 1;
    }
  }
  first_turn_.push_back(static_cast<int>(turns_.size()));
}

/// Only what has been received is reduced, so that there is a turn for it.
void Streams::add_reductions() {
  for (int course = 0; course < static_cast<int>(workload_.courses.size()); ++course) {
    const Course& at = workload_.courses[index(course)];
    for (int round = at.first_round; round < at.last_round; ++round) {
      const Round& of = workload_.rounds[index(round)];
      for (int flow = of.first_flow; flow < of.last_flow; ++flow) {
        if (!workload_.flows[index(flow)].local) continue;
        const std::size_t actor = slot(course, workload_.flows[index(flow)].source);
        const auto turn =
            std::lower_bound(turns_.begin() + first_turn_[actor], turns_.begin() + first_turn_[actor + 1],
                             round, [](const Turn& before, int wanted) { return before.round < wanted; });
        assert(turn != turns_.begin() + first_turn_[actor + 1] && turn->round == round);
        turn->reduction = flow;
      }
    }
  }
}

int Streams::begin(int actor) {
  int& next = next_[index(actor)];
  if (in_flight_[index(actor)] == most_in_flight_ || next == static_cast<int>(order_.size())) return -1;
  // Flows between courses need those of all.
  const int courses = static_cast<int>(workload_.courses.size());
  const int last = shifted_ ? next - next % courses + courses : next + 1;
  while (first_ + static_cast<int>(live_.size()) < last) begin_live(first_ + static_cast<int>(live_.size()));
  ++in_flight_[index(actor)];
  return next++;
}

void Streams::begin_live(int stream) {
  if (spare_.empty()) spare_.emplace_back();
  Live& live = live_.emplace_back(std::move(spare_.back()));
  spare_.pop_back();
  live.course = order_[index(stream)];
  live.unfinished = workload_.actors;
  const Course& course = workload_.courses[index(live.course)];
  live.at.resize(index(workload_.actors));
  for (int actor = 0; actor < workload_.actors; ++actor) {
    live.at[index(actor)] = {first_turn_[slot(live.course, actor)] - 1, 0, 0, 0, false};
  }
  live.first_flow = 0;
  int last_flow = 0;
  if (course.first_round < course.last_round) {
    live.first_flow = workload_.rounds[index(course.first_round)].first_flow;
    last_flow = workload_.rounds[index(course.last_round - 1)].last_flow;
  }
  live.flows.assign(index(last_flow - live.first_flow), kNobody);
}

bool Streams::advance(int stream, int actor, std::vector<Begun>& begun) {
  Live& live = of(stream);
  Position& position = live.at[index(actor)];
  const std::size_t at = slot(live.course, actor);
  if (position.receiving > 0) return false;
  if (position.turn >= first_turn_[at]) {
    const int reduction = turns_[index(position.turn)].reduction;
    if (reduction >= 0 && !position.reducing) {
      position.reducing = true;
      ++position.others;
      begun.push_back({stream, reduction});
    }
    if (position.others > 0) return false;
    position.reducing = false;
    if (++position.repeat == repeats(position)) {
      position.repeat = 0;
      ++position.turn;
    }
  } else {
    ++position.turn;
  }
  if (position.turn < first_turn_[at + 1]) {
    const Turn& turn = turns_[index(position.turn)];
    for (int i = turn.first_part; i < turn.last_part; ++i) {
      const Part& part = parts_[index(i)];
      ++(part.receives ? position.receiving : position.others);
      const int of_source = part.receives ? stream - part.shift : stream;
      int& state = flow_state(of_source, part.flow);
      assert(state == kNobody || state == kOneEnd);
      if (state == kOneEnd) begun.push_back({of_source, part.flow});
      state = state == kNobody ? kOneEnd : kNobody;
    }
    return false;
  }
  --in_flight_[index(actor)];
  --live.unfinished;
  for (; !live_.empty() && live_.front().unfinished == 0; ++first_) {
    spare_.push_back(std::move(live_.front()));
    live_.pop_front();
  }
  return true;
}

void Streams::finish(int stream, int actor, End end) {
  Position& at = of(stream).at[index(actor)];
  --(end == End::receive ? at.receiving : at.others);
}

}  // namespace polyring
