#include "simulation/streams.hpp"

#include <algorithm>
#include <cassert>

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

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
  for (const Round& round : workload.rounds) add_parts(round);
}

void Streams::add_parts(const Round& round) {
  Parts& result = rounds_.emplace_back();
  result.first.assign(index(workload_.actors) + 1, 0);
  for (int flow = round.first_flow; flow < round.last_flow; ++flow) {
    const Flow& of = workload_.flows[index(flow)];
    if (of.local) {
      result.reduction.resize(index(workload_.actors), -1);
      result.reduction[index(of.source)] = flow;
      continue;
    }
    ++result.first[index(of.source) + 1];
    ++result.first[index(of.destination) + 1];
  }
  for (std::size_t actor = 1; actor < result.first.size(); ++actor)
    result.first[actor] += result.first[actor - 1];
  result.parts.resize(index(result.first.back()));
  std::vector<int> next(result.first.begin(), result.first.end() - 1);
  for (int flow = round.first_flow; flow < round.last_flow; ++flow) {
    const Flow& of = workload_.flows[index(flow)];
    if (of.local) continue;
    result.parts[index(next[index(of.source)]++)] = {flow, false};
    result.parts[index(next[index(of.destination)]++)] = {flow, true};
  }
}

std::span<const Streams::Part> Streams::parts(int round, int actor) const {
  const Parts& of = rounds_[index(round)];
  const int first = of.first[index(actor)];
  return std::span(of.parts).subspan(index(first), index(of.first[index(actor) + 1] - first));
}

int Streams::reduction(int round, int actor) const {
  const std::vector<int>& of = rounds_[index(round)].reduction;
  return of.empty() ? -1 : of[index(actor)];
}

int Streams::first_flow(const Live& live) const {
  return workload_.rounds[index(course(live).first_round)].first_flow;
}

int& Streams::flow_state(int stream, int flow) {
  Live& live = of(stream);
  return live.flows[index(flow - first_flow(live))];
}

int Streams::begin(int actor) {
  int& next = next_[index(actor)];
  if (in_flight_[index(actor)] == most_in_flight_ || next == static_cast<int>(order_.size())) return -1;
  if (index(next - first_) == live_.size()) {
    if (spare_.empty()) spare_.emplace_back();
    Live& live = live_.emplace_back(std::move(spare_.back()));
    spare_.pop_back();
    live.course = order_[index(next)];
    live.unfinished = workload_.actors;
    const Course& course = workload_.courses[index(live.course)];
    live.at.assign(index(workload_.actors), Position{course.first_round - 1, 0, 0, 0, false});
    const int flows = course.first_round == course.last_round
                          ? 0
                          : workload_.rounds[index(course.last_round - 1)].last_flow - first_flow(live);
    live.flows.assign(index(flows), kNobody);
  }
  ++in_flight_[index(actor)];
  return next++;
}

bool Streams::advance(int stream, int actor, std::vector<int>& begun) {
  Live& live = of(stream);
  const Course& course = workload_.courses[index(live.course)];
  Position& position = live.at[index(actor)];
  for (;;) {
    if (position.receiving > 0) return false;
    if (position.round >= course.first_round && !position.reducing) {
      const int flow = reduction(position.round, actor);
      if (flow >= 0) {
        position.reducing = true;
        ++position.others;
        begun.push_back(flow);
      }
    }
    if (position.others > 0) return false;
    position.reducing = false;
    const bool again = position.round >= course.first_round &&
                       ++position.repeat < workload_.rounds[index(position.round)].repeats;
    if (!again) {
      position.repeat = 0;
      do {
        ++position.round;
      } while (position.round < course.last_round && parts(position.round, actor).empty());
    }
    if (position.round == course.last_round) break;
    for (const Part& part : parts(position.round, actor)) {
      ++(part.receives ? position.receiving : position.others);
      int& state = live.flows[index(part.flow - first_flow(live))];
      assert(state == kNobody || state == kOneEnd);
      if (state == kOneEnd) begun.push_back(part.flow);
      state = state == kNobody ? kOneEnd : kNobody;
    }
  }
  --in_flight_[index(actor)];
  --live.unfinished;
  for (; !live_.empty() && live_.front().unfinished == 0; ++first_) {
    spare_.push_back(std::move(live_.front()));
    live_.pop_front();
  }
  return true;
}

void Streams::finish(int stream, int flow, int actor, End end) {
  flow_state(stream, flow) = kNobody;
  Position& at = position(stream, actor);
  --(end == End::receive ? at.receiving : at.others);
}

}  // namespace polyring
