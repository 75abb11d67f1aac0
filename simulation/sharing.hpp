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
  /// them. A flow without resources has an infinite rate.
  const std::vector<Id>& share();
  double rate(Id flow) const { return rates_[static_cast<std::size_t>(flow)]; }

 private:
  struct Crossing {
    Id flow;
    int use;  // index among the flow's uses
  };
  struct Resource {
    double capacity = 0;
    std::vector<Crossing> crossings;
    bool dirty = false;
    bool touched = false;
    // While filling:
    double left = 0;     // of the capacity
    double weight = 0;   // of the flows whose rates still rise
    int rising = 0;      // their number
    double highest = 0;  // rate
  };
  struct Member {
    std::span<const Use> uses;
    std::vector<int> positions;  // among the crossings of each used resource
    int limit = -1;              // the resource that was full at this rate
    bool reached = false;        // its rate is being computed
    bool fixed = false;
  };

  void mark(int resource);
  void reach(Id flow);
  void open();
  void fill();
  void fix(int resource, double level);
  bool reach_wronged();
  bool fair(Id flow, const Resource& resource) const;

  std::vector<Resource> resources_;
  std::vector<Member> members_;
  std::vector<double> rates_;
  std::vector<int> dirty_;
  std::vector<int> touched_;  // resources that reached flows cross
  std::vector<Id> changed_;   // reached flows
  std::vector<Id> unbound_;   // new flows without resources
};

}  // namespace polyring
