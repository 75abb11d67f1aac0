// Schedule: what an algorithm returns, and what verify, simulate, execute and draw interpret.
//
// The payload is cut into lanes, and each lane into chunks; all of these streams are disjoint and independent
// of each other, so they may overlap in time as an interpreter likes. A stream passes through the stages of
// its lane: down the lane's dimensions, each reducing over disjoint groups of ranks, then back up, each
// spreading the result.
//
//     lane 0: reduce over dimension 0, reduce over dimension 1, spread over dimension 1, spread over
//     dimension 0
//
// From stage to stage a rank holds smaller slices: the blocks that the pattern leaves it, out of the slice
// that its group shared. A schedule is small: only a permuted order makes its size depend on the number of
// ranks. Transfers are expanded on demand, for one rank and one step.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/element.hpp"
#include "collectives/schedule/pattern.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// One factor of the rank grid, and the pattern that its groups run. Ranks r whose (r / stride) mod size
/// alone differs form a group.
class Dimension {
 public:
  /// `order[position]` is the coordinate of the group's member at that position of the pattern; empty: 0, 1,
  /// 2, …
  Dimension(const Pattern& pattern, int size, int stride, std::vector<int> order = {});

  const Pattern& pattern() const { return *pattern_; }
  int size() const { return size_; }
  int stride() const { return stride_; }
  int steps() const { return pattern_->steps(size_); }
  int spread_steps() const { return pattern_->spread_steps(size_); }

  /// The rank's position in its group, and the rank at another position of it.
  int position(Rank rank) const;
  Rank rank_at(Rank member_of_group, int position) const;

 private:
  const Pattern* pattern_;
  int size_;
  int stride_;
  std::vector<int> order_;
  std::vector<int> positions_;  // the inverse of order_
};

/// One of the rings (or trees) that run side by side, with its share of the payload.
struct Lane {
  Slice slice;
  int chunks = 1;
  std::vector<Dimension> dimensions;
};

struct Schedule {
  std::string algorithm;
  int ranks = 1;
  Count count = 0;
  std::vector<Lane> lanes;
};

/// No schedule has more streams: message tags tell them apart, and MPI promises no more than these.
inline constexpr int kMostStreams = 32768;

/// A chunk of a lane: what passes through the stages as a unit.
struct Stream {
  int lane = 0;
  int chunk = 0;
  auto operator<=>(const Stream&) const = default;
};

enum class Combine { reduce, copy };

/// Whether partial results are of the payload's kind, in the output, or as exact_partial() says, apart.
enum class Partials { in_output, apart };

/// Bytes of an element in messages: of the payload, and of a partial result.
struct ElementSizes {
  int payload;
  int partial;

  ElementSizes(int both) : payload(both), partial(both) {}
  ElementSizes(ElementKind kind, ReduceOp op, Partials partials = Partials::apart)
      : payload(size_of(kind)),
        partial(partials == Partials::apart ? size_of(exact_partial(kind, op)) : payload) {}

  /// Of what is sent in this step: the first carries nothing but inputs.
  int in_message(Combine combine, int stage, int step) const {
    return combine == Combine::copy || (stage == 0 && step == 0) ? payload : partial;
  }
  /// Steps that a steady pattern repeats from `step` on with messages as long as this one's, of `steps`.
  int repeats(int stage, int step, int steps) const {
    return stage == 0 && step == 0 && partial != payload ? 1 : steps - step;
  }
};

/// All transfers of a step happen at once: each sends what its source held before the step.
struct Transfer {
  Stream stream;
  int stage = 0;
  int step = 0;
  Rank source = 0;
  Rank destination = 0;
  Slice slice;
  Combine combine = Combine::reduce;
  auto operator<=>(const Transfer&) const = default;
};

/// One pattern over all groups of one dimension, forwards (reduce) or backwards (spread).
struct Stage {
  int dimension = 0;
  Combine combine = Combine::reduce;
};

inline int stage_count(const Lane& lane) { return 2 * static_cast<int>(lane.dimensions.size()); }
Stage stage_at(const Lane& lane, int stage);
inline int step_count(const Lane& lane, int stage) {
  const Stage at = stage_at(lane, stage);
  const Dimension& dimension = lane.dimensions[static_cast<std::size_t>(at.dimension)];
  return at.combine == Combine::copy ? dimension.spread_steps() : dimension.steps();
}

/// The elements of a stream.
Slice stream_slice(const Schedule& schedule, Stream stream);

/// The slice that the rank's group shares in the lane's `dimension`-th dimension; with `dimension` equal to
/// their number, what the rank holds fully reduced before the way back. Empty for a rank that has nothing
/// left to do there.
Slice shared_slice(const Schedule& schedule, Stream stream, int dimension, Rank rank);

/// Appends what `rank` sends, or receives, in one step, in an order that both ends of each transfer agree on.
/// Empty transfers are left out.
void append_sends(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                  std::vector<Transfer>& transfers);
void append_receives(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                     std::vector<Transfer>& transfers);

/// The schedule of one group, run at the same time by every group of `ranks`: members of a group are `stride`
/// apart. `ranks` is a multiple of stride · schedule.ranks. Each group reduces a payload of its own.
Schedule in_groups(const Schedule& schedule, int stride, int ranks);

/// The cost of a schedule to one rank: what it sends and receives, in bytes or, with elements of one byte, in
/// elements, and the steps it takes part in.
struct RankWork {
  Count sent = 0;
  Count received = 0;
  int steps = 0;  // of one chunk, the longest lane's
};
RankWork work_of(const Schedule& schedule, Rank rank, ElementSizes sizes = 1);

/// Asserts what every algorithm must honour: each lane's dimensions multiply to `ranks`, lanes tile [0,
/// count).
void assert_well_formed(const Schedule& schedule);

}  // namespace polyring
