// Streams: where each actor is in each stream of a workload that has begun and not ended.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "simulation/workload.hpp"

namespace polyring {

/// Which part of a round is over for an actor.
enum class End { send, receive, reduction };

class Streams {
 public:
  /// An actor in a stream.
  struct Position {
    int round = 0;   // of the workload; the course's last_round: done
    int repeat = 0;  // of the round
    int receiving = 0;
    int others = 0;  // sends, and the reduction
    bool reducing = false;
  };
  /// Of a flow in a stream: how many of its ends have come, or which flow under way it is.
  static constexpr int kNobody = -1;
  static constexpr int kOneEnd = -2;
  struct Live {
    int course = 0;
    int unfinished = 0;        // actors
    std::vector<Position> at;  // by actor
    std::vector<int> flows;    // of the course
  };

  Streams(const Workload& workload, int window);

  /// The actor's next stream, when it may have one more in flight; otherwise −1.
  int begin(int actor);

  /// The actor goes on with a stream until it has to wait. Appends the flows that begin: both of their ends
  /// have come. True when the actor is done with the stream.
  bool advance(int stream, int actor, std::vector<int>& begun);

  void set_underway(int stream, int flow, int id) { flow_state(stream, flow) = id; }
  void finish(int stream, int flow, int actor, End end);

  /// Streams that some actor has begun and not all have ended: [first(), first() + live().size()).
  int first() const { return first_; }
  std::deque<Live>& live() { return live_; }
  const std::deque<Live>& live() const { return live_; }
  Position& position(int stream, int actor) { return of(stream).at[static_cast<std::size_t>(actor)]; }
  const Course& course(const Live& live) const {
    return workload_.courses[static_cast<std::size_t>(live.course)];
  }
  bool all_done() const { return first_ == static_cast<int>(order_.size()); }

 private:
  struct Part {
    int flow;
    bool receives;
  };
  struct Parts {
    std::vector<int> first;  // by actor, in `parts`; one more at the end
    std::vector<Part> parts;
    std::vector<int> reduction;  // by actor: the flow, or −1; empty when there is none at all
  };

  Live& of(int stream) { return live_[static_cast<std::size_t>(stream - first_)]; }
  int& flow_state(int stream, int flow);
  void add_parts(const Round& round);
  std::span<const Part> parts(int round, int actor) const;
  int reduction(int round, int actor) const;
  int first_flow(const Live& live) const;

  const Workload& workload_;
  std::vector<int> order_;     // the course of each stream
  std::vector<Parts> rounds_;  // as the workload's
  std::size_t most_in_flight_;
  std::vector<int> next_;               // stream, by actor
  std::vector<std::size_t> in_flight_;  // by actor
  int first_ = 0;
  std::deque<Live> live_;
  std::vector<Live> spare_;
};

}  // namespace polyring
