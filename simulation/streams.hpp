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
    int turn = 0;    // of the actor's in the course; past its last: done
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
    int first_flow = 0;        // of the course
    int unfinished = 0;        // actors
    std::vector<Position> at;  // by actor
    std::vector<int> flows;    // of the course
  };
  struct Begun {
    int stream;  // of the flow's source
    int flow;
  };

  Streams(const Workload& workload, int window);

  /// The actor's next stream, when it may have one more in flight; otherwise −1.
  int begin(int actor);

  /// The actor goes on with a stream until it has to wait. Appends the flows that begin: both of their ends
  /// have come. True when the actor is done with the stream.
  bool advance(int stream, int actor, std::vector<Begun>& begun);

  void set_underway(int stream, int flow, int id) { flow_state(stream, flow) = id; }
  /// A flow under way is over, and with it a part of a round, of its source or its destination.
  void end(int stream, int flow) { flow_state(stream, flow) = kNobody; }
  void finish(int stream, int actor, End end);

  /// Streams that some actor has begun and not all have ended: [first(), first() + live().size()).
  int first() const { return first_; }
  std::deque<Live>& live() { return live_; }
  const std::deque<Live>& live() const { return live_; }
  int repeats(const Position& at) const { return turns_[static_cast<std::size_t>(at.turn)].repeats; }
  const Position& position(int stream, int actor) { return of(stream).at[static_cast<std::size_t>(actor)]; }
  bool all_done() const { return first_ == static_cast<int>(order_.size()); }

 private:
  struct Part {
    int flow;
    int shift;  // Flow::shift
    bool receives;
  };
  /// A round that an actor has a part in.
  struct Turn {
    int round;
    int repeats;
    int first_part;  // in parts_
    int last_part;
    int reduction;  // the flow, or −1
  };

  Live& of(int stream) { return live_[static_cast<std::size_t>(stream - first_)]; }
  int& flow_state(int stream, int flow) {
    Live& live = of(stream);
    return live.flows[static_cast<std::size_t>(flow - live.first_flow)];
  }
  std::size_t slot(int course, int actor) const;
  void add_turns();
  void group_turns(const std::vector<int>& first_part, const std::vector<int>& round_of_part);
  void add_reductions();
  void begin_live(int stream);

  const Workload& workload_;
  std::vector<int> order_;  // the course of each stream
  bool shifted_ = false;    // some flow's ends are in different courses
  std::vector<Part> parts_;
  std::vector<Turn> turns_;
  std::vector<int> first_turn_;  // by course and actor; one more at the end
  std::size_t most_in_flight_;
  std::vector<int> next_;               // stream, by actor
  std::vector<std::size_t> in_flight_;  // by actor
  int first_ = 0;
  std::deque<Live> live_;
  std::vector<Live> spare_;
};

}  // namespace polyring
