#include "models/activations.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace polyring {

namespace {

constexpr std::int64_t kLogitBytes = 4;

std::int64_t shared(std::int64_t bytes, int ranks) { return (bytes + ranks - 1) / ranks; }

}  // namespace

std::string_view to_text(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "";
}

Bytes activation_bytes(const Block& block, Precision precision, Recompute recompute, const BlockSplit& split,
                       Attention attention) {
  assert(split.ranks > 0);
  const std::int64_t element = element_bytes(precision);
  const int along_sequence = split.sequence_parallel ? split.ranks : 1;
  const Kept& kept = block.kept;
  if (recompute == Recompute::full)
    return {static_cast<std::uint64_t>(shared(kept.input * element, along_sequence))};
  const std::int64_t whole = kept.whole * element + kept.mask_bytes;
  std::int64_t divided = kept.split * element + kept.logits * kLogitBytes;
  if (recompute == Recompute::none && attention == Attention::unfused)
    divided += kept.scores * element + kept.score_mask_bytes;
  return {static_cast<std::uint64_t>(shared(whole, along_sequence) + shared(divided, split.ranks))};
}

double recomputed_flops(const Block& block, Recompute recompute) {
  if (recompute == Recompute::none) return 0;
  if (recompute == Recompute::full) return block.forward_flops;
  return block.attention_flops;
}

}  // namespace polyring
