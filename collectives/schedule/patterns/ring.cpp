// Ring reduce-scatter.
//
//   n = 4, the block that each member sends to the next, by step:
//             member 0   1   2   3
//     step 0     b3  b0  b1  b2
//     step 1     b2  b3  b0  b1
//     step 2     b1  b2  b3  b0        then member i holds block i
//
// Steps: n − 1. Bytes sent per member: (n − 1)/n · S. Time: (n − 1)(α + S/(n·β)).
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2),
// 2009.
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

class Ring final : public Pattern {
 public:
  std::string_view name() const override { return "ring"; }
  Outcome outcome() const override { return Outcome::scattered; }
  bool follows_order() const override { return true; }
  int steps(int n) const override { return n - 1; }

  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    moves.push_back({(member + 1) % n, {block_sent(n, step, member), 1}});
  }
  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    const int previous = (member + n - 1) % n;
    moves.push_back({previous, {block_sent(n, step, previous), 1}});
  }
  Blocks holds(int, int member) const override { return {member, 1}; }
  bool cyclic() const override { return true; }
  bool steady() const override { return true; }

 private:
  static int block_sent(int n, int step, int member) { return (member - step - 1 + 2 * n) % n; }
};

}  // namespace

const Pattern& ring_pattern() {
  static const Ring pattern;
  return pattern;
}

}  // namespace polyring
