// Reduce to member 0 along a chain.
//
//   n = 4:   0 ← 1 ← 2 ← 3      step 0: 3 → 2, step 1: 2 → 1, step 2: 1 → 0, the whole slice each
//
// Steps: n − 1. Bytes sent per member: S. Time, pipelined: about (n − 1)·α + S/β: each member sends and
// receives once only, so that chunks follow each other at the speed of one link.
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

class Chain final : public Pattern {
 public:
  std::string_view name() const override { return "chain"; }
  Outcome outcome() const override { return Outcome::at_one; }
  bool follows_order() const override { return true; }
  int steps(int n) const override { return n - 1; }

  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    if (member == n - 1 - step) moves.push_back({member - 1, {0, n}});
  }
  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    if (member == n - 2 - step) moves.push_back({member + 1, {0, n}});
  }
  Blocks holds(int n, int member) const override { return {0, member == 0 ? n : 0}; }
};

}  // namespace

const Pattern& chain_pattern() {
  static const Chain pattern;
  return pattern;
}

}  // namespace polyring
