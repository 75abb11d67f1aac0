#include "models/block_timeline.hpp"

#include <algorithm>
#include <cstddef>

namespace polyring {

void BlockTimeline::gather(const BlockTimes& block) {
  gathered_ = 0;
  if (block.gather.value == 0) return;
  network_free_ = std::max(network_free_, asked_) + block.gather.value;
  gathered_ = network_free_;
}

void BlockTimeline::compute(Seconds time) {
  asked_ = std::max(compute_free_, gathered_);
  compute_free_ = asked_ + time.value;
  computed_ += time.value;
}

void BlockTimeline::forward() {
  for (const BlockTimes& block : blocks_) {
    gather(block);
    compute(block.forward);
  }
}

void BlockTimeline::backward(bool reduce) {
  const auto leave = [&](const BlockTimes& block) {
    if (reduce && block.reduce.value > 0)
      network_free_ = std::max(network_free_, compute_free_) + block.reduce.value;
  };
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    gather(blocks_[i]);
    if (i + 1 < blocks_.size()) leave(blocks_[i + 1]);
    compute(blocks_[i].backward);
  }
  leave(blocks_.front());
}

Seconds BlockTimeline::end() const { return {std::max(compute_free_, network_free_)}; }

BlockStep run_blocks(const std::vector<BlockTimes>& blocks, int micro_batches, bool reduce_in_each) {
  BlockTimeline timeline(blocks);
  for (int i = 0; i < micro_batches; ++i) {
    timeline.forward();
    timeline.backward(reduce_in_each || i + 1 == micro_batches);
  }
  return {timeline.end(), timeline.computed()};
}

}  // namespace polyring
