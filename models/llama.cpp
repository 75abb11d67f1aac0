// Decoders of today: Llama 3 (Dubey et al., The Llama 3 Herd of Models, arXiv 2407.21783, table 3) and
// Mixtral (Jiang et al., arXiv 2401.04088, table 1), with the names of Hugging Face's LlamaForCausalLM and
// MixtralForCausalLM. Root-mean-square norms, rotary positions (no parameter), grouped-query attention, three
// matrices in a feed-forward layer (SwiGLU), no biases, and a head that shares no weight with the embedding.
#include <fmt/format.h>

#include <array>
#include <string>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

namespace {

/// Down(silu(gate(x)) · up(x)). `positions`: rows of one sample that reach it.
void feed_forward(LayerStack& stack, const std::array<std::string, 3>& gate_up_down, const LlamaShape& shape,
                  std::int64_t positions) {
  stack.linear(gate_up_down[0], shape.features, shape.feed_forward, positions, false);
  stack.linear(gate_up_down[1], shape.features, shape.feed_forward, positions, false);
  stack.linear(gate_up_down[2], shape.feed_forward, shape.features, positions, false);
}

/// Each token goes to `active` of the experts; taken evenly, as the loss that balances them wants it.
void experts(LayerStack& stack, const std::string& name, const LlamaShape& shape) {
  const std::int64_t reached = shape.sequence * shape.active;
  stack.linear(name + ".gate", shape.features, shape.experts, shape.sequence, false);
  stack.begin_experts(shape.experts, shape.active, reached * shape.features);
  for (int expert = 0; expert < shape.experts; ++expert) {
    const std::string prefix = fmt::format("{}.experts.{}", name, expert);
    feed_forward(stack, {prefix + ".w1", prefix + ".w3", prefix + ".w2"}, shape, reached / shape.experts);
  }
  stack.end_experts();
}

/// What is kept as in arXiv 2205.05198, section 4.1, for these layers and without dropout: inputs of both
/// norms and of the layers behind them; queries, keys, values and the input of the output projection; gate,
/// up and their product. Copies that tokens send to experts are kept by these.
Kept kept_of(const LlamaShape& shape) {
  const std::int64_t s = shape.sequence;
  const std::int64_t keys = shape.features / shape.heads * shape.key_value_heads;
  const std::int64_t copies = shape.experts > 0 ? shape.active : 1;
  return {.whole = (3 + copies) * s * shape.features,
          .split = s * (2 * shape.features + 2 * keys) + 3 * copies * s * shape.feed_forward,
          .scores = 2 * shape.heads * s * s};
}

void block(LayerStack& stack, const std::string& name, const LlamaShape& shape) {
  const std::int64_t d = shape.features;
  const std::int64_t s = shape.sequence;
  const std::int64_t keys = d / shape.heads * shape.key_value_heads;
  stack.rms_norm(name + ".input_layernorm", d);
  stack.linear(name + ".self_attn.q_proj", d, d, s, false);
  stack.linear(name + ".self_attn.k_proj", d, keys, s, false);
  stack.linear(name + ".self_attn.v_proj", d, keys, s, false);
  // All heads of queries, each with the keys and values of its group.
  stack.attention_products(s, s, d);
  stack.linear(name + ".self_attn.o_proj", d, d, s, false);
  stack.rms_norm(name + ".post_attention_layernorm", d);
  if (shape.experts > 0) {
    experts(stack, name + ".block_sparse_moe", shape);
  } else {
    feed_forward(stack, {name + ".mlp.gate_proj", name + ".mlp.up_proj", name + ".mlp.down_proj"}, shape, s);
  }
  stack.keep(kept_of(shape));
  stack.attention_heads({shape.heads, shape.key_value_heads});
  stack.end_block(name, s * d, {s * d, s * d});  // exchanges as in Megatron-LM: see transformer.cpp
}

}  // namespace

Model llama(std::string_view name, std::string_view summary, const LlamaShape& shape) {
  const std::int64_t d = shape.features;
  LayerStack stack;
  stack.embedding("model.embed_tokens", shape.vocabulary, d);
  stack.end_block("model.embed_tokens", shape.sequence * d, {shape.sequence * d});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer)
    block(stack, fmt::format("model.layers.{}", layer), shape);
  stack.rms_norm("model.norm", d);
  stack.linear("lm_head", d, shape.vocabulary, shape.sequence, false);
  stack.keep({.whole = 2 * shape.sequence * d, .logits = shape.sequence * shape.vocabulary});
  stack.end_block("lm_head", shape.sequence * shape.vocabulary);
  return stack.finish(name, summary);
}

}  // namespace polyring
