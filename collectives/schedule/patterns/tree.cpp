// Binary-tree reduce, and its mirror.
//
//   n = 8, the in-order binary tree under member 0; a member's height is the number of trailing zeros of its
//   index:
//                 0
//                  ╲
//                   4          step 2: 4 → 0
//                 /   ╲
//                2     6       step 1: 2 → 4, 6 → 4
//               / ╲   / ╲
//              1   3 5   7     step 0: 1 → 2, 3 → 2, 5 → 6, 7 → 6
//
// A parent that lies beyond the last member is replaced by the next ancestor. The mirrored tree renames
// member m to n − 1 − m for even n and to m − 1 (mod n) for odd n: the inner members of one tree are leaves
// of the other (for odd n, all but one), so that half of the payload over each keeps the members' ports
// equally busy.
//
// Steps: ceil(log2 n). Bytes sent per member: S up each tree. Time, pipelined: about log2(n)·α + S/β per
// direction. Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", Parallel Computing 35(12), 2009; NVIDIA's NCCL uses the same shape since version 2.4.
#include <bit>

#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

int height(int node) { return std::countr_zero(static_cast<unsigned>(node)); }

int parent(int n, int node) {
  const int bit = 1 << height(node);
  const int up = (node ^ bit) | (bit << 1);
  return up < n ? up : node ^ bit;
}

class Tree final : public Pattern {
 public:
  explicit Tree(bool mirrored) : mirrored_(mirrored) {}
  std::string_view name() const override { return mirrored_ ? "mirrored tree" : "tree"; }
  Outcome outcome() const override { return Outcome::at_one; }
  int steps(int n) const override { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    const int node = node_of(n, member);
    if (node != 0 && height(node) == step) moves.push_back({member_of(n, parent(n, node)), {0, n}});
  }

  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    // Every child of height `step` differs from its parent in that bit and perhaps the next one up.
    const int node = node_of(n, member);
    const int bit = 1 << step;
    for (const int child : {node - bit, node + bit}) {
      if (child > 0 && child < n && height(child) == step && parent(n, child) == node) {
        moves.push_back({member_of(n, child), {0, n}});
      }
    }
  }

  Blocks holds(int n, int member) const override { return {0, node_of(n, member) == 0 ? n : 0}; }

 private:
  int node_of(int n, int member) const {
    if (!mirrored_) return member;
    return n % 2 == 0 ? n - 1 - member : (member + n - 1) % n;
  }
  int member_of(int n, int node) const {
    if (!mirrored_) return node;
    return n % 2 == 0 ? n - 1 - node : (node + 1) % n;
  }

  bool mirrored_;
};

}  // namespace

const Pattern& tree_pattern() {
  static const Tree pattern(false);
  return pattern;
}

const Pattern& mirrored_tree_pattern() {
  static const Tree pattern(true);
  return pattern;
}

}  // namespace polyring
