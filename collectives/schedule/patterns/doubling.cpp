// Recursive-doubling allreduce, for any number of members.
//
//   n = 4:  step 0: 0 ⇄ 1, 2 ⇄ 3     step 1: 0 ⇄ 2, 1 ⇄ 3     everything each time
//
// Beyond the largest power of two p in n, r = n − p members take part through their neighbour: of the first
// 2r, the even ones fold their slice into the odd ones first, and get the result in the end.
//
//   n = 6:  fold: 0 → 1, 2 → 3;  1 ⇄ 3, 4 ⇄ 5;  1 ⇄ 4, 3 ⇄ 5;  spread: 1 → 0, 3 → 2
//
// Both partners combine in the order of the ranks, so that all members get the same bits. Steps: log2 p, and
// two more when n is no power of two. Bytes sent per member: log2(p)·S. Time: log2(p)·(α + S/β). The
// algorithm `recursive-doubling` is this over all ranks: MPI libraries reduce small payloads so. Thakur,
// Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
#include <bit>

#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

int largest_power(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }
int folded(int n) { return n - largest_power(n); }

class Doubling final : public Pattern {
 public:
  std::string_view name() const override { return "doubling"; }
  Outcome outcome() const override { return Outcome::everywhere; }
  int steps(int n) const override { return fold_steps(n) + std::countr_zero(unsigned_power(n)); }
  int spread_steps(int n) const override { return fold_steps(n); }

  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    if (step < fold_steps(n)) {
      if (member < 2 * folded(n) && member % 2 == 0) moves.push_back({member + 1, {0, n}});
    } else {
      exchange(n, step, member, moves);
    }
  }
  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    if (step < fold_steps(n)) {
      if (member < 2 * folded(n) && member % 2 == 1) moves.push_back({member - 1, {0, n}});
    } else {
      exchange(n, step, member, moves);
    }
  }
  Blocks holds(int n, int member) const override { return {0, takes_part(n, member) ? n : 0}; }

 private:
  static unsigned unsigned_power(int n) { return static_cast<unsigned>(largest_power(n)); }
  static int fold_steps(int n) { return folded(n) > 0 ? 1 : 0; }
  static bool takes_part(int n, int member) { return member >= 2 * folded(n) || member % 2 == 1; }

  static void exchange(int n, int step, int member, std::vector<Move>& moves) {
    if (!takes_part(n, member)) return;
    const int rest = folded(n);
    const int number = member < 2 * rest ? member / 2 : member - rest;  // among those that take part
    const int other = number ^ (1 << (step - fold_steps(n)));
    moves.push_back({other < rest ? 2 * other + 1 : other + rest, {0, n}});
  }
};

}  // namespace

const Pattern& doubling_pattern() {
  static const Doubling pattern;
  return pattern;
}

}  // namespace polyring
