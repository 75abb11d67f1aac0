// One step of a pipelined replica as a timeline. It says when each rank computes each pass of each
// micro-batch.
//
// Each rank computes its passes in a fixed order, one at a time:
//
//   gpipe        all micro-batches forward, then all back (Huang et al., arXiv 1811.06965)
//   1F1B         as many forward as there are stages behind, then one back and one forward in turn
//                (Narayanan et al., arXiv 2104.04473, section 2.2.1): fewer micro-batches are in flight
//   interleaved  1F1B with v virtual stages on each rank, stage k on rank k mod p (ibid., section 2.2.2): the
//                bubble is v times smaller, and v times as much is sent
//
//   gpipe, p = 2   rank 0   F0 F1 F2 F3          B0 B1 B2 B3       1F1B   F0 F1    B0 F2 B1 F3 B2    B3
//                  rank 1      F0 F1 F2 F3 B0 B1 B2 B3                       F0 B0 F1 B1 F2 B2 F3 B3
//
// The link between two ranks takes one message at a time in each direction, in the order of the sender, and
// sending does not slow down computing. What a rank waits for is the bubble. With free links and equal stages
// it is (p − 1)/v of the time of a micro-batch on one rank: (p − 1) / (v m) of the time that it computes.
#pragma once

#include <vector>

#include "base/units.hpp"

namespace polyring {

enum class PipelineOrder { gpipe, one_forward_one_backward, interleaved };

/// Of one micro-batch.
struct PipelineStage {
  Seconds forward;
  Seconds backward;
  Seconds send_forward;   // activations to the next stage; none from the last
  Seconds send_backward;  // their gradient to the stage before; none from the first
};

struct PipelineStep {
  Seconds total;
  double bubble = 0;  // the part of the time, averaged over the ranks, for which they do not compute
};

/// A pass that a rank computes.
struct PipelinePass {
  bool forward = true;
  int micro_batch = 0;
  int chunk = 0;  // virtual stage of the rank
};

/// The passes of a rank, in their order. `ranks`, `chunks` and `micro_batches` are above 0; more than one
/// chunk needs the interleaved order, and micro-batches that are a multiple of the ranks.
std::vector<PipelinePass> passes_of(PipelineOrder order, int ranks, int chunks, int micro_batches, int rank);

/// The most passes forward that a rank has computed and not yet taken back: what it keeps activations of,
/// each of a micro-batch through one virtual stage.
int most_in_flight(PipelineOrder order, int ranks, int chunks, int micro_batches, int rank);

/// `stages` holds those of all ranks in the order in which a micro-batch passes them: stage k is on rank
/// k mod `ranks`. At least one micro-batch, and some time to compute; as passes_of() otherwise.
PipelineStep run_pipeline(const std::vector<PipelineStage>& stages, int micro_batches,
                          PipelineOrder order = PipelineOrder::gpipe, int ranks = 0);

}  // namespace polyring
