// A step of ranks that each compute all blocks of a model, or of a stage, while the network brings weights
// and takes gradients away, block by block. One stream computes, one communicates:
//
//   network   | gather 0 | gather 1 | gather 2 |  …  | gather 1 |  scatter 2 | gather 0 | scatter 1 |
//   compute              | forward 0 | forward 1 | forward 2 | backward 2 | backward 1 | backward 0 |
//
// A block's weights are asked for when the block before it begins to compute: one block ahead, as FSDP's
// prefetch does. Its gradients leave when its backward pass is over. The network does what it is asked for in
// that order. Computing beside it takes 1 + slowdown times as long, and what is asked for begins after a
// launch; both as in step.hpp, and 0 unless they are stated.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.hpp"
#include "models/step.hpp"

namespace polyring {

struct BlockTimes {
  Seconds forward;   // of one micro-batch, with all that it has to wait for inside
  Seconds backward;  // likewise
  Seconds gather;    // of its weights, before either pass; 0: they are there
  Seconds reduce;    // of its gradients, after a backward pass
};

class BlockTimeline {
 public:
  /// Keeps a reference to the blocks.
  explicit BlockTimeline(const std::vector<BlockTimes>& blocks, const Interplay& interplay = {})
      : blocks_(blocks), interplay_(interplay) {}

  /// A micro-batch through all blocks, after what came before.
  void forward();
  /// `reduce`: gradients leave in this pass.
  void backward(bool reduce);
  /// When both streams are done.
  Seconds end() const;
  /// For which blocks were computed, and what of it is because the network was busy.
  Seconds computed() const { return {computed_ + slowed_}; }
  Seconds slowed() const { return {slowed_}; }

 private:
  void gather(const BlockTimes& block);
  void leave(const BlockTimes& block, bool reduce);
  void occupy(double asked, Seconds time);
  /// `next`: the block whose weights are asked for meanwhile; may be null.
  void compute(Seconds time, const BlockTimes* next);

  const std::vector<BlockTimes>& blocks_;
  Interplay interplay_;
  std::vector<Span> busy_;      // the network, in its order
  std::size_t first_busy_ = 0;  // the first that may not be over
  double compute_free_ = 0;
  double network_free_ = 0;
  double asked_ = 0;     // when the last block began to compute
  double gathered_ = 0;  // when the weights of the next block are there
  double computed_ = 0;
  double slowed_ = 0;
};

/// `micro_batches` through all blocks. Gradients leave in each of them, or in the last alone.
struct BlockStep {
  Seconds total;
  Seconds computed;
  Seconds slowed;  // of it
};
BlockStep run_blocks(const std::vector<BlockTimes>& blocks, int micro_batches, bool reduce_in_each,
                     const Interplay& interplay = {});

}  // namespace polyring
