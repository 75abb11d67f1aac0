// Schedule: what an algorithm returns, and what verify, simulate, execute and draw interpret.
//
// The payload is cut into lanes, and each lane into chunks. A chunk of a lane is a stream. All streams are
// disjoint and independent of each other, so an interpreter may overlap them as it likes. A stream passes
// through the stages of its lane. A stage runs one pattern over one dimension of the rank grid. An allreduce
// over two dimensions has four stages:
//
//     reduce over dimension 0, reduce over dimension 1, spread over dimension 1, spread over dimension 0
//
// The first two alone are a reduce-scatter, the last two an allgather. An all-to-all has one stage over each
// dimension.
//
// With each reduction a rank holds a smaller slice: the blocks that the pattern leaves it, of the slice that
// its group shared. Each spread undoes that. A schedule is small: only a permuted order makes its size depend
// on the number of ranks. Transfers are expanded on demand, for one rank and one step.
#pragma once

#include <span>
#include <string>
#include <string_view>
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
  bool operator==(const Dimension&) const = default;

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

/// What a schedule makes of the ranks' payloads. All but an allreduce divide a payload into a block for each
/// rank, all of one length.
enum class Collective {
  allreduce,       // at every rank the combination of all payloads
  reduce_scatter,  // at rank r block r of that
  allgather,       // rank r has block r; at every rank all blocks
  alltoall,        // rank r's block q becomes rank q's block r
};

/// The blocks of a payload; 1 where no rank has one of its own.
inline int blocks_of(Collective collective, int ranks) {
  return collective == Collective::allreduce ? 1 : ranks;
}

/// "reduce-scatter".
std::string to_text(Collective collective);
/// Throws a usage Error for anything else.
Collective parse_collective(std::string_view text);
std::vector<std::string> collective_names();

/// Elements of a rank's input and output, where the longer of the two has `count`.
inline Count input_count(Collective collective, int ranks, Count count) {
  return collective == Collective::allgather ? count / ranks : count;
}
inline Count output_count(Collective collective, int ranks, Count count) {
  return collective == Collective::reduce_scatter ? count / ranks : count;
}
inline bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter;
}

/// What a stage does with the slice that each group of a dimension shares.
enum class StageKind {
  reduce,       // the pattern: a reduce-scatter, a reduce or an allreduce, by its Outcome
  spread,       // the pattern backwards, with copies: an allgather or a broadcast
  alltoall,     // member p's block q becomes member q's block p; each step sends what was there at first
  in_switches,  // the network's switches add up what the members hold, and give each the sum
};

/// One pattern over all groups of one dimension. A reduction comes after those over the dimensions before it,
/// and a spread after those over the dimensions behind it.
struct Stage {
  int dimension = 0;
  StageKind kind = StageKind::reduce;
  bool operator==(const Stage&) const = default;
};

/// One of the rings (or trees) that run side by side, with its share of the payload.
struct Lane {
  Slice slice;
  int chunks = 1;
  std::vector<Dimension> dimensions;
  std::vector<Stage> stages;

  const Dimension& dimension_of(int stage) const;
};

/// Elements are numbered lane after lane, in a lane chunk after chunk, and in a chunk block after block,
/// where there are blocks: lanes and chunks take a part of each. Two ranks' blocks a0 a1 and b0 b1 in two
/// lanes:
///
///     in a payload   a0 a1 b0 b1
///     numbered       a0 b0 (lane 0)  a1 b1 (lane 1)
///
/// See payload_offset().
struct Schedule {
  std::string algorithm;
  int ranks = 1;
  Count count = 0;  // of the longer of a rank's two buffers
  std::vector<Lane> lanes;
  Collective collective = Collective::allreduce;
  int groups = 1;  // that do the same side by side, see in_groups()

  int blocks() const { return blocks_of(collective, ranks / groups); }
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
  Slice slice;  // at the source
  Combine combine = Combine::reduce;
  Count moved = 0;  // so many elements further on at the destination

  Slice received() const { return {slice.offset + moved, slice.count}; }
  auto operator<=>(const Transfer&) const = default;
};

inline int stage_count(const Lane& lane) { return static_cast<int>(lane.stages.size()); }
int step_count(const Lane& lane, int stage);
/// How the transfers of a stage take effect.
inline Combine combine_of(StageKind kind) {
  return kind == StageKind::reduce ? Combine::reduce : Combine::copy;
}

/// The elements of a stream.
Slice stream_slice(const Schedule& schedule, Stream stream);

/// All streams that have elements, chunk by chunk: lanes take turns, so that all of them make progress from
/// the start.
std::vector<Stream> streams_of(const Schedule& schedule);

/// The ranks whose blocks a lane's are, in the lane's order: as the dimensions' groups come to hold them, the
/// first dimension's members outermost. Of a schedule with blocks.
std::vector<Rank> block_owners(const Lane& lane, int ranks);

/// Where a stream's `element`-th element lies in a payload, or, with `in_block`, in the one block of a rank.
/// `owners` are block_owners() of the stream's lane, empty where there are no blocks.
Count payload_offset(const Schedule& schedule, Stream stream, std::span<const Rank> owners, Count element,
                     bool in_block);

/// The slice that the rank's group shares in the lane's `dimension`-th dimension; with `dimension` equal to
/// their number, what the rank holds when all have reduced. Empty for a rank that has nothing left to do
/// there.
Slice shared_slice(const Schedule& schedule, Stream stream, int dimension, Rank rank);

/// Appends what `rank` sends to other ranks, or receives from them, in one step, in an order that both ends
/// of each transfer agree on. Empty transfers are left out. A stage in switches has none.
void append_sends(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                  std::vector<Transfer>& transfers);
void append_receives(const Schedule& schedule, Stream stream, int stage, int step, Rank rank,
                     std::vector<Transfer>& transfers);

/// The schedule of one group, run at the same time by every group of `ranks`: members of a group are `stride`
/// apart. `ranks` is a multiple of stride · schedule.ranks. Each group has a payload of its own, with a block
/// for each of its members where there are blocks. Such a schedule is for prices and simulations:
/// block_owners() and payload_offset() are of one group.
Schedule in_groups(const Schedule& schedule, int stride, int ranks);

/// An allreduce over `ranks`, a multiple of the schedule's: each host's ranks do what the schedule of one
/// host does, and before it begins to spread, the network's switches add up what the hosts hold.
Schedule with_switches(const Schedule& of_host, int ranks);

/// The cost of a schedule to one rank: what it sends and receives, in bytes or, with elements of one byte, in
/// elements, and the steps it takes part in.
struct RankWork {
  Count sent = 0;
  Count received = 0;
  int steps = 0;  // of one chunk, the longest lane's
};
RankWork work_of(const Schedule& schedule, Rank rank, ElementSizes sizes = 1);

/// Asserts what every algorithm must honour: each lane's dimensions multiply to `ranks`, its stages come in
/// order, lanes tile [0, count).
void assert_well_formed(const Schedule& schedule);

}  // namespace polyring
