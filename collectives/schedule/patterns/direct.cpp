// Direct reduce-scatter: one step, every member to every other.
//
//   n = 4:  member m sends block i to member i, for all i ≠ m; member i combines n − 1 receipts with its own.
//
// Steps: 1. Bytes sent per member: (n − 1)/n · S. Time: α + (n − 1)/n · S/β where a member's port is the
// limit. The algorithm `direct` is this over all ranks, and back: 2α + 2(n − 1)/n · S/β on a fabric that
// blocks nothing, the fastest where latency counts and links are plentiful. The one-phase form of
// Rabenseifner, ICCS 2004.
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

class Direct final : public Pattern {
 public:
  std::string_view name() const override { return "direct"; }
  Outcome outcome() const override { return Outcome::scattered; }
  bool sends_straight() const override { return true; }
  int steps(int n) const override { return n > 1 ? 1 : 0; }

  // Each member begins with its successor, so that not all of them send to member 0 first.
  void sends(int n, int, int member, std::vector<Move>& moves) const override {
    for (int distance = 1; distance < n; ++distance) {
      const int peer = (member + distance) % n;
      moves.push_back({peer, {peer, 1}});
    }
  }
  void receives(int n, int, int member, std::vector<Move>& moves) const override {
    for (int distance = 1; distance < n; ++distance) {
      moves.push_back({(member + n - distance) % n, {member, 1}});
    }
  }
  Blocks holds(int, int member) const override { return {member, 1}; }
  bool cyclic() const override { return true; }
};

}  // namespace

const Pattern& direct_pattern() {
  static const Direct pattern;
  return pattern;
}

}  // namespace polyring
