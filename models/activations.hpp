// Activations: what a training step keeps in memory from the forward pass until the backward pass has used
// it.
//
// Of a transformer's layer the formulas of Korthikanti et al., Reducing Activation Recomputation in Large
// Transformer Models (arXiv 2205.05198), sections 4 and 5: with s tokens, h features, a heads, t ranks of a
// split, elements of two bytes,
//
//   kept by each rank of a split                                s·h·(10 + 24/t + 5·a·s/(h·t))
//   the same with the sequence split, too                       s·h·(34 + 5·a·s/h)/t
//   with selective recomputation, or fused attention            without the term in a
//   with full recomputation                                     2·s·h
//
// Layers of other models keep what their families say (Kept); of CNNs the outputs of convolutions and batch
// normalisations. Buffers that live shorter, and what an allocator wastes, come on top.
#pragma once

#include <string_view>

#include "base/units.hpp"
#include "models/model.hpp"
#include "models/precision.hpp"

namespace polyring {

/// What is computed again in the backward pass, in place of being kept.
/// - none: nothing.
/// - selective: attention matrices. Fused attention keeps none in the first place.
/// - full: each block from its input.
enum class Recompute { none, selective, full };

std::string_view to_text(Recompute recompute);  // "none", "selective", "full"

/// Whether attention matrices are kept. Fused attention makes them piece by piece, in both passes (Dao et
/// al., FlashAttention, arXiv 2205.14135, of 2022). Frameworks of today do so by themselves; those of before
/// 2022 did not.
enum class Attention { fused, unfused };

/// How a block is split over ranks.
struct BlockSplit {
  int ranks = 1;                   // of intra-model (tensor) parallelism
  bool sequence_parallel = false;  // what would be whole on each of them is split along the sequence
};

/// Bytes that a rank keeps of one block, per sample.
Bytes activation_bytes(const Block& block, Precision precision, Recompute recompute,
                       const BlockSplit& split = {}, Attention attention = Attention::fused);

/// FLOPs that recomputation adds to a step of one sample: the forward pass of what is computed again, under
/// selective recomputation attention's products.
double recomputed_flops(const Block& block, Recompute recompute);

}  // namespace polyring
