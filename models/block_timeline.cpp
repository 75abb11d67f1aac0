#include "models/block_timeline.hpp"

#include <algorithm>
#include <utility>

namespace polyring {

void BlockTimeline::occupy(double asked, Seconds time) {
  const double begin = std::max(network_free_, asked + interplay_.launch.value);
  network_free_ = begin + time.value;
  busy_.push_back({{begin}, {network_free_}});
}

void BlockTimeline::gather(const BlockTimes& block) {
  gathered_ = 0;
  if (block.gather.value == 0) return;
  occupy(asked_, block.gather);
  gathered_ = network_free_;
}

void BlockTimeline::leave(const BlockTimes& block, bool reduce) {
  if (reduce && block.reduce.value > 0) occupy(compute_free_, block.reduce);
}

void BlockTimeline::compute(Seconds time, const BlockTimes* next) {
  asked_ = std::max(compute_free_, gathered_);
  if (next != nullptr) gather(*next);
  double now = asked_;
  double left = time.value;
  const double slowdown = interplay_.slowdown;
  for (std::size_t i = first_busy_; slowdown > 0 && i < busy_.size() && left > 0; ++i) {
    const auto [begin, end] = std::pair(busy_[i].begin.value, busy_[i].end.value);
    if (end <= now) {
      first_busy_ = i + 1;
      continue;
    }
    const double alone = std::clamp(begin - now, 0.0, left);
    now += alone;
    left -= alone;
    if (now < begin) break;
    const double beside = std::min(left, (end - now) / (1 + slowdown));
    now += (1 + slowdown) * beside;
    left -= beside;
  }
  compute_free_ = now + left;
  computed_ += time.value;
  if (slowdown > 0) slowed_ += compute_free_ - asked_ - time.value;
}

void BlockTimeline::forward() {
  gather(blocks_.front());
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    compute(blocks_[i].forward, i + 1 < blocks_.size() ? &blocks_[i + 1] : nullptr);
}

void BlockTimeline::backward(bool reduce) {
  gather(blocks_.back());
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    compute(blocks_[i].backward, i > 0 ? &blocks_[i - 1] : nullptr);
    leave(blocks_[i], reduce);
  }
}

Seconds BlockTimeline::end() const { return {std::max(compute_free_, network_free_)}; }

BlockStep run_blocks(const std::vector<BlockTimes>& blocks, int micro_batches, bool reduce_in_each,
                     const Interplay& interplay) {
  BlockTimeline timeline(blocks, interplay);
  for (int i = 0; i < micro_batches; ++i) {
    timeline.forward();
    timeline.backward(reduce_in_each || i + 1 == micro_batches);
  }
  return {timeline.end(), timeline.computed(), timeline.slowed()};
}

}  // namespace polyring
