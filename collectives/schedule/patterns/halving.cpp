// Recursive-halving reduce-scatter, for any number of members.
//
//   n = 4:  step 0, distance 2:  0 ⇄ 2, 1 ⇄ 3, each sends the half of the blocks that its partner keeps
//           step 1, distance 1:  0 ⇄ 1, 2 ⇄ 3, each sends one block       then member i holds block i
//
// For a power of two, partners are member XOR distance. Otherwise the exchange becomes a shift on a circulant
// graph: with distances n > ceil(n/2) > ceil(n/4) > … > 1, member m sends to m + distance the run of blocks
// that begins at that member and is (previous distance − distance) long. Both send (n − 1)/n · S, the least
// there is.
//
// Steps: ceil(log2 n). Time: ceil(log2 n)·α + (n − 1)/n · S/β. The algorithm `halving-doubling` is this over
// all ranks, and back: twice as many steps, bytes and seconds.
// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004 (powers of two);
// Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", arXiv:2410.14234 (any n).
#include <bit>

#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

/// The distance of a step, and of the step before it (n for the first).
struct Distances {
  int previous;
  int current;
};

Distances distances(int n, int step) {
  Distances result{n, (n + 1) / 2};
  for (int i = 0; i < step; ++i) result = {result.current, (result.current + 1) / 2};
  return result;
}

bool power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

/// The blocks that `keeper` goes on with after a step of this distance.
Blocks kept(int n, Distances step, int keeper) {
  if (power_of_two(n)) return {keeper / step.current * step.current, step.current};
  return {keeper, step.previous - step.current};
}

class Halving final : public Pattern {
 public:
  std::string_view name() const override { return "halving"; }
  Outcome outcome() const override { return Outcome::scattered; }
  int steps(int n) const override { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    const Distances at = distances(n, step);
    const int peer = power_of_two(n) ? member ^ at.current : (member + at.current) % n;
    moves.push_back({peer, kept(n, at, peer)});
  }
  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    const Distances at = distances(n, step);
    const int peer = power_of_two(n) ? member ^ at.current : (member + n - at.current) % n;
    moves.push_back({peer, kept(n, at, member)});
  }
  Blocks holds(int, int member) const override { return {member, 1}; }
  bool contiguous(int n) const override { return power_of_two(n); }
};

}  // namespace

const Pattern& halving_pattern() {
  static const Halving pattern;
  return pattern;
}

}  // namespace polyring
