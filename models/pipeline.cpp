#include "models/pipeline.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace polyring {

namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// The k-th pass of a direction in the interleaved order: ranks' worth of micro-batches through one chunk
/// after another.
PipelinePass interleaved_pass(int k, int ranks, int chunks, bool forward) {
  const int round = k / (ranks * chunks);
  const int chunk = k % (ranks * chunks) / ranks;
  return {forward, round * ranks + k % ranks, forward ? chunk : chunks - 1 - chunk};
}

/// Runs the ranks' lists of passes as far as what they wait for is there.
class Timeline {
 public:
  Timeline(const std::vector<PipelineStage>& stages, int micro_batches, PipelineOrder order, int ranks)
      : stages_(stages),
        micro_batches_(micro_batches),
        ranks_(ranks),
        arrived_(2 * stages.size() * index(micro_batches), kNever),
        free_(index(ranks)),
        links_(2 * index(ranks)),
        next_(index(ranks)) {
    const int chunks = static_cast<int>(stages.size()) / ranks;
    for (int rank = 0; rank < ranks; ++rank)
      passes_.push_back(passes_of(order, ranks, chunks, micro_batches, rank));
    for (int m = 0; m < micro_batches; ++m) arrived(true, 0, m) = 0;
  }

  /// The time at which the last rank is done.
  Seconds run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < ranks_; ++rank) {
        while (next_[index(rank)] < passes_[index(rank)].size() && advance(rank)) moved = true;
      }
    }
    return {*std::max_element(free_.begin(), free_.end())};
  }

  bool all_done() const {
    for (std::size_t rank = 0; rank < passes_.size(); ++rank)
      if (next_[rank] < passes_[rank].size()) return false;
    return true;
  }

 private:
  static constexpr double kNever = -1;

  /// When what a pass needs is at its stage.
  double& arrived(bool forward, int stage, int micro_batch) {
    return arrived_[(2 * index(stage) + (forward ? 1 : 0)) * index(micro_batches_) + index(micro_batch)];
  }

  bool advance(int rank) {
    const PipelinePass& pass = passes_[index(rank)][next_[index(rank)]];
    const int stage = pass.chunk * ranks_ + rank;
    const double ready = arrived(pass.forward, stage, pass.micro_batch);
    if (ready == kNever) return false;
    const PipelineStage& work = stages_[index(stage)];
    double& free = free_[index(rank)];
    free = std::max(free, ready) + (pass.forward ? work.forward : work.backward).value;
    hand_on(pass, stage, rank, free);
    ++next_[index(rank)];
    return true;
  }

  void hand_on(const PipelinePass& pass, int stage, int rank, double done) {
    const int last = static_cast<int>(stages_.size()) - 1;
    if (pass.forward && stage == last) {
      arrived(false, stage, pass.micro_batch) = done;
      return;
    }
    const int to = pass.forward ? stage + 1 : stage - 1;
    if (to < 0) return;
    const PipelineStage& work = stages_[index(stage)];
    double& link = links_[2 * index(rank) + (pass.forward ? 1 : 0)];
    link = std::max(link, done) + (pass.forward ? work.send_forward : work.send_backward).value;
    arrived(pass.forward, to, pass.micro_batch) = link;
  }

  const std::vector<PipelineStage>& stages_;
  int micro_batches_;
  int ranks_;
  std::vector<double> arrived_;
  std::vector<double> free_;   // by rank
  std::vector<double> links_;  // by rank and direction
  std::vector<std::size_t> next_;
  std::vector<std::vector<PipelinePass>> passes_;
};

}  // namespace

std::vector<PipelinePass> passes_of(PipelineOrder order, int ranks, int chunks, int micro_batches, int rank) {
  assert(ranks > 0 && chunks > 0 && micro_batches > 0);
  assert(chunks == 1 || (order == PipelineOrder::interleaved && micro_batches % ranks == 0));
  const int all = micro_batches * chunks;
  int before_first_backward = all;
  if (order != PipelineOrder::gpipe) {
    const int behind = ranks - 1 - rank;
    before_first_backward = chunks == 1 ? behind : 2 * behind + (chunks - 1) * ranks;
  }
  const auto pass = [&](int k, bool forward) {
    return chunks == 1 ? PipelinePass{forward, k, 0} : interleaved_pass(k, ranks, chunks, forward);
  };
  std::vector<PipelinePass> passes;
  int forward = 0;
  for (; forward < std::min(before_first_backward, all); ++forward) passes.push_back(pass(forward, true));
  for (int backward = 0; backward < all; ++backward) {
    if (forward < all) passes.push_back(pass(forward++, true));
    passes.push_back(pass(backward, false));
  }
  return passes;
}

int most_in_flight(PipelineOrder order, int ranks, int chunks, int micro_batches, int rank) {
  int kept = 0;
  int most = 0;
  for (const PipelinePass& pass : passes_of(order, ranks, chunks, micro_batches, rank)) {
    kept += pass.forward ? 1 : -1;
    most = std::max(most, kept);
  }
  return most;
}

PipelineStep run_pipeline(const std::vector<PipelineStage>& stages, int micro_batches, PipelineOrder order,
                          int ranks) {
  assert(!stages.empty() && micro_batches > 0);
  if (ranks == 0) ranks = static_cast<int>(stages.size());
  assert(static_cast<int>(stages.size()) % ranks == 0);
  Timeline timeline(stages, micro_batches, order, ranks);
  PipelineStep step;
  step.total = timeline.run();
  assert(timeline.all_done());  // no order waits for itself
  Seconds computed;
  for (const PipelineStage& stage : stages) computed = computed + stage.forward + stage.backward;
  const double busy = micro_batches * computed.value / ranks;
  step.bubble = std::max(0.0, 1 - busy / step.total.value);
  return step;
}

}  // namespace polyring
