// One step of a pipelined replica as a timeline, in GPipe's order (Huang et al., arXiv 1811.06965): the
// micro-batches go forward through the stages one after another, and when all are through, back.
//
//   stage 0   F0 F1 F2 F3                          B0 B1 B2 B3
//   stage 1      F0 F1 F2 F3                    B0 B1 B2 B3
//   stage 2         F0 F1 F2 F3              B0 B1 B2 B3
//   stage 3            F0 F1 F2 F3 B0 B1 B2 B3
//
// A stage computes one micro-batch at a time, in order; so does the link between two stages, in each
// direction, and sending does not slow down computing. What a stage waits for is the bubble.
#pragma once

#include <vector>

#include "base/units.hpp"

namespace polyring {

/// Of one micro-batch.
struct PipelineStage {
  Seconds forward;
  Seconds backward;
  Seconds send_forward;   // activations to the next stage; none from the last
  Seconds send_backward;  // their gradient to the stage before; none from the first
};

struct PipelineStep {
  Seconds total;
  double bubble = 0;  // the part of the time, averaged over the stages, for which they do not compute
};

/// At least one stage and one micro-batch, and some time to compute.
PipelineStep run_pipeline(const std::vector<PipelineStage>& stages, int micro_batches);

}  // namespace polyring
