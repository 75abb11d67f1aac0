#include "models/pipeline.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace polyring {

namespace {

/// One pass of one micro-batch through one stage.
struct Work {
  Seconds compute;
  Seconds send;
};

/// One pass of all micro-batches through the stages, in the order of `stages`. Stage i is free from free[i]
/// on, and in the end from what is then in free[i].
void run_pass(const std::vector<Work>& stages, int micro_batches, std::vector<Seconds>& free) {
  std::vector<Seconds> link_free(stages.size());
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    Seconds arrival;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      free[i] = std::max(free[i], arrival) + stages[i].compute;
      link_free[i] = std::max(link_free[i], free[i]) + stages[i].send;
      arrival = link_free[i];
    }
  }
}

}  // namespace

PipelineStep run_pipeline(const std::vector<PipelineStage>& stages, int micro_batches) {
  assert(!stages.empty() && micro_batches > 0);
  std::vector<Work> forward;
  std::vector<Work> backward;
  Seconds computed;
  for (const PipelineStage& stage : stages) {
    forward.push_back({stage.forward, stage.send_forward});
    backward.push_back({stage.backward, stage.send_backward});
    computed = computed + stage.forward + stage.backward;
  }
  std::vector<Seconds> free(stages.size());
  run_pass(forward, micro_batches, free);
  std::reverse(backward.begin(), backward.end());
  std::reverse(free.begin(), free.end());
  run_pass(backward, micro_batches, free);

  PipelineStep step;
  step.total = *std::max_element(free.begin(), free.end());
  const double busy = micro_batches * computed.value / static_cast<double>(stages.size());
  step.bubble = std::max(0.0, 1 - busy / step.total.value);
  return step;
}

}  // namespace polyring
