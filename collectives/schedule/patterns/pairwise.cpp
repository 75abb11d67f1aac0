// Pairwise reduce-scatter: every member to every other, one at a time.
//
//   n = 4, who sends its block i to member i, by step:
//     step 0, distance 1:   0 → 1, 1 → 2, 2 → 3, 3 → 0
//     step 1, distance 2:   0 → 2, 1 → 3, 2 → 0, 3 → 1
//     step 2, distance 3:   0 → 3, 1 → 0, 2 → 1, 3 → 2
//
// What `direct` does in one step, in n − 1: at any time a member sends to one other and receives from one, so
// that no port has more than one message each way.
//
// Steps: n − 1. Bytes sent per member: (n − 1)/n · S. Time: (n − 1)·(α + S/(n·β)). The algorithm `pairwise`
// is this over all ranks, and back. MPI libraries exchange long payloads so: Thakur, Rabenseifner and Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

class Pairwise final : public Pattern {
 public:
  std::string_view name() const override { return "pairwise"; }
  Outcome outcome() const override { return Outcome::scattered; }
  bool sends_straight() const override { return true; }
  int steps(int n) const override { return n - 1; }

  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    const int peer = (member + step + 1) % n;
    moves.push_back({peer, {peer, 1}});
  }
  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    moves.push_back({(member + n - step - 1) % n, {member, 1}});
  }
  Blocks holds(int, int member) const override { return {member, 1}; }
  bool cyclic() const override { return true; }
};

}  // namespace

const Pattern& pairwise_pattern() {
  static const Pairwise pattern;
  return pattern;
}

}  // namespace polyring
