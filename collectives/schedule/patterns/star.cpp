// Reduce to member 0 in one step: what a parameter server, or a local master, does.
//
//   n = 4:  1 → 0, 2 → 0, 3 → 0, the whole slice each
//
// Steps: 1. Bytes received by member 0: (n − 1)·S. Time: α + (n − 1)·S/β, the root's port being the limit.
// The algorithm `parameter-server` is this over all ranks, and back: 2α + 2(n − 1)·S/β. The older systems
// averaged gradients so (Li et al., "Scaling distributed machine learning with the parameter server", OSDI
// 2014, here with one server); it is the baseline that the others are to beat.
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

class Star final : public Pattern {
 public:
  std::string_view name() const override { return "star"; }
  Outcome outcome() const override { return Outcome::at_one; }
  int steps(int n) const override { return n > 1 ? 1 : 0; }

  void sends(int n, int, int member, std::vector<Move>& moves) const override {
    if (member != 0) moves.push_back({0, {0, n}});
  }
  void receives(int n, int, int member, std::vector<Move>& moves) const override {
    if (member != 0) return;
    for (int peer = 1; peer < n; ++peer) moves.push_back({peer, {0, n}});
  }
  Blocks holds(int n, int member) const override { return {0, member == 0 ? n : 0}; }
};

}  // namespace

const Pattern& star_pattern() {
  static const Star pattern;
  return pattern;
}

}  // namespace polyring
