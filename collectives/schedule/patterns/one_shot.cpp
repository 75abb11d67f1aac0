// One-shot allreduce: one step, everything to everybody.
//
//   n = 4:  member m sends its whole slice to all others, and each combines the n − 1 that it gets with its
//   own
//
// There is nothing to spread afterwards. Every member combines in the order of the ranks, so that all of them
// get the same bits. Steps: 1. Bytes sent per member: (n − 1)·S. Time: α + (n − 1)·S/β: for payloads of a few
// KiB, where each further step costs more than the bytes. The algorithm `one-shot` is this over all ranks.
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

class OneShot final : public Pattern {
 public:
  std::string_view name() const override { return "one-shot"; }
  Outcome outcome() const override { return Outcome::everywhere; }
  int steps(int n) const override { return n > 1 ? 1 : 0; }

  void sends(int n, int, int member, std::vector<Move>& moves) const override {
    for (int distance = 1; distance < n; ++distance) moves.push_back({(member + distance) % n, {0, n}});
  }
  void receives(int n, int, int member, std::vector<Move>& moves) const override {
    for (int distance = 1; distance < n; ++distance) moves.push_back({(member + n - distance) % n, {0, n}});
  }
  Blocks holds(int n, int) const override { return {0, n}; }
  bool cyclic() const override { return true; }
  int spread_steps(int) const override { return 0; }
};

}  // namespace

const Pattern& one_shot_pattern() {
  static const OneShot pattern;
  return pattern;
}

}  // namespace polyring
