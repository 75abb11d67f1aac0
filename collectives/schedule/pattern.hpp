// Pattern: how the members of one group reduce the slice that they share, step by step.
//
// A group of n members splits its slice into n blocks. In each step a member sends runs of blocks to others,
// which combine them with their own. Afterwards each block is fully reduced at exactly one member: at member
// i for the scattering patterns (ring, halving, direct, pairwise: reduce-scatter), all of them at member 0
// for the rooted ones (tree, chain, star: reduce), and all of them at everybody for one-shot and doubling.
// The way back, allgather or broadcast, is never written down: it is the same pattern run backwards, with
// source and destination exchanged and copies in place of combinations.
//
// Patterns know nothing of ranks, lanes or bytes. Groups in disjoint parts of a schedule share one pattern.
#pragma once

#include <string_view>
#include <vector>

namespace polyring {

/// A run of blocks, taken modulo n: {3, 2} of n = 4 is blocks 3 and 0.
struct Blocks {
  int first = 0;
  int number = 0;
  bool operator==(const Blocks&) const = default;
};

/// One end of a transfer inside a group.
struct Move {
  int peer = 0;  // the other member
  Blocks blocks;
  bool operator==(const Move&) const = default;
};

/// Where the blocks are fully reduced in the end.
enum class Outcome {
  scattered,   // one block at each member
  at_one,      // all at one member
  everywhere,  // all at every member, or at one of each pair, which hands them to the other
};

class Pattern {
 public:
  virtual ~Pattern() = default;
  virtual std::string_view name() const = 0;
  virtual Outcome outcome() const = 0;

  /// True when each member sends to the next one in the group's order alone, so that the order matters.
  virtual bool follows_order() const { return false; }

  /// True when every block goes from each sender to its last member in one move. Only such a pattern can make
  /// an alltoall.
  virtual bool sends_straight() const { return false; }

  /// The steps for a group of n members; 0 for n = 1.
  virtual int steps(int n) const = 0;

  /// Appends what `member` sends, and receives, in `step`. The two agree: each send is one receive of its
  /// peer.
  virtual void sends(int n, int step, int member, std::vector<Move>& moves) const = 0;
  virtual void receives(int n, int step, int member, std::vector<Move>& moves) const = 0;

  /// The blocks that are fully reduced at `member` in the end.
  virtual Blocks holds(int n, int member) const = 0;

  /// How many of the steps, the first ones, are run backwards to spread the result: all, but where members
  /// have everything already.
  virtual int spread_steps(int n) const { return steps(n); }

  /// True when all that a member receives in one step is for one and the same run of blocks, which does not
  /// wrap around.
  virtual bool contiguous(int) const { return true; }

  /// True when every step moves equally many blocks between the same pairs, so that a price for one holds for
  /// all.
  virtual bool steady() const { return false; }

  /// True when member m + 1 does in every step what member m does, with all members and blocks one further,
  /// modulo n.
  virtual bool cyclic() const { return false; }
};

/// Reduce-scatter around a ring: n − 1 steps of one block to the next member.
const Pattern& ring_pattern();
/// Reduce-scatter by recursive halving: ceil(log2 n) steps, any n.
const Pattern& halving_pattern();
/// Reduce-scatter in one step: every member sends block i straight to member i.
const Pattern& direct_pattern();
/// The same in n − 1 steps, one partner at a time.
const Pattern& pairwise_pattern();
/// Allreduce in one step: every member sends everything to every other.
const Pattern& one_shot_pattern();
/// Reduce to member 0 up a binary tree: ceil(log2 n) steps.
const Pattern& tree_pattern();
/// The same up the mirrored tree, whose inner members are the leaves of the first; to member n − 1, or for
/// odd n to member 1. Together the two are a double binary tree.
const Pattern& mirrored_tree_pattern();
/// Reduce to member 0 in one step.
const Pattern& star_pattern();
/// Reduce to member 0 along a chain: n − 1 steps.
const Pattern& chain_pattern();
/// Allreduce by recursive doubling: log2 n steps of everything; any n.
const Pattern& doubling_pattern();

/// Whether two patterns are one and the same for a group of n members.
bool same_moves(const Pattern& a, const Pattern& b, int n);

/// A pattern that may be a dimension's: "ring", "halving", "direct", "pairwise", "one-shot", "doubling",
/// "star". Null for any other name.
const Pattern* find_pattern(std::string_view name);

}  // namespace polyring
