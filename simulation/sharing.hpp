// Sharing: the rates of the flows that are under way, max-min fair over the resources that they cross.
//
// No flow can have more without another that has no more than it getting less (Bertsekas and Gallager, "Data
// Networks", 2nd ed., 6.5.2). Found by progressive filling: all rates rise together; when a resource is full,
// the flows across it keep theirs, and the others go on rising.
#pragma once

#include <span>
#include <vector>

#include "simulation/workload.hpp"

namespace polyring {

class Sharing {
 public:
  using Id = int;  // of a flow under way

  explicit Sharing(const std::vector<double>& capacities);

  /// The flow begins or ends to use its resources; rates are stale until share().
  void add(Id flow, std::span<const Use> uses);
  void remove(Id flow);

  /// Computes anew the rates (bytes/s) that may have changed since the last call; returns the flows that have
  /// them, some perhaps more than once. A flow without resources has an infinite rate.
  const std::vector<Id>& share();
  double rate(Id flow) const { return members_[static_cast<std::size_t>(flow)].rate; }

 private:
  static constexpr int kNone = -1;
  struct Crossing {
    Id flow;
    int use;  // index among the flow's uses
    double weight;
  };
  struct Resource {
    std::vector<Crossing> crossings;
    double capacity = 0;
    // While filling:
    double left = 0;     // of the capacity
    double weight = 0;   // of the flows whose rates still rise
    double highest = 0;  // rate
    int rising = 0;      // the number of flows whose rates still rise
    bool dirty = false;
    bool touched = false;
  };
  /// What filling looks at again and again, apart from the rest, so that little memory is walked through.
  struct Member {
    double rate = 0;
    int limit = kNone;     // the resource that was full at this rate; none of one that has just come
    bool reached = false;  // its rate is being computed
    bool fixed = false;
  };
  struct Way {
    std::span<const Use> uses;
    std::size_t first_position = 0;  // in positions_
    std::size_t room = 0;            // there
  };

  /// Where the flows of a resource that still rise would fill it.
  struct Level {
    double level;
    int resource;
  };

  int& position(Id flow, int use) {
    return positions_[ways_[static_cast<std::size_t>(flow)].first_position + static_cast<std::size_t>(use)];
  }
  void mark(int resource);
  void refill(int dirty);
  void touch(int resource);
  void reach(Id flow);
  void reach_dirty();
  void open();
  void fill();
  void fix(int resource, double level);
  bool reach_wronged();
  bool fair(const Member& member, const Resource& resource) const;

  std::vector<Resource> resources_;
  std::vector<Member> members_;  // by flow
  std::vector<Way> ways_;        //
  std::vector<int> positions_;   // of each flow's uses among the crossings of the resource
  std::vector<int> dirty_;
  std::vector<Id> changed_;
  std::vector<Id> unbound_;  // new flows without resources
  // Of what is being filled:
  std::vector<Id> reached_;
  std::vector<int> touched_;  // resources that reached flows cross
  std::size_t examined_ = 0;  // of these, whether they are dirty
  std::vector<Level> levels_;
};

}  // namespace polyring
