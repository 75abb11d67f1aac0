// Transformers: BERT (Devlin et al., arXiv 1810.04805) with the names of Hugging Face's BertForPreTraining,
// and GPT-2 (Radford et al., 2019) with those of its GPT2LMHeadModel.
//
// Both heads share their weight with the word embedding. Its gradient is the sum of two parts, one that is
// ready first (from the head) and one that is ready last (from the lookup), so it is ready last.
#include <fmt/format.h>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

namespace {

/// A transformer layer split as in Megatron-LM (Shoeybi et al., arXiv 1909.08053, section 3): heads of the
/// attention and columns of the first linear layer over the ranks, and one allreduce after each of the two
/// halves, in either pass. The vocabulary is split, too: one allreduce after the embeddings in the forward
/// pass, and one of the head's input in the backward pass, which is counted with the embeddings.
std::vector<std::int64_t> two_halves(std::int64_t sequence, std::int64_t features) {
  return {sequence * features, sequence * features};
}

/// Scores Q·Kᵀ and their product with V, all heads together. Causal masks are not exploited: the full square
/// is counted, as training frameworks without fused attention compute it.
void attention_products(LayerStack& stack, std::int64_t sequence, std::int64_t features) {
  stack.matrix_product(sequence, features, sequence);
  stack.matrix_product(sequence, sequence, features);
}

void bert_block(LayerStack& stack, const std::string& name, const BertShape& shape) {
  const std::int64_t d = shape.features;
  for (const char* projection : {"query", "key", "value"}) {
    stack.linear(name + ".attention.self." + projection, d, d, shape.sequence);
  }
  attention_products(stack, shape.sequence, d);
  stack.linear(name + ".attention.output.dense", d, d, shape.sequence);
  stack.layer_norm(name + ".attention.output.LayerNorm", d);
  stack.linear(name + ".intermediate.dense", d, 4 * d, shape.sequence);
  stack.linear(name + ".output.dense", 4 * d, d, shape.sequence);
  stack.layer_norm(name + ".output.LayerNorm", d);
  stack.end_block(name, shape.sequence * d, two_halves(shape.sequence, d));
}

void gpt_block(LayerStack& stack, const std::string& name, const GptShape& shape) {
  const std::int64_t d = shape.features;
  stack.layer_norm(name + ".ln_1", d);
  stack.linear(name + ".attn.c_attn", d, 3 * d, shape.sequence);
  attention_products(stack, shape.sequence, d);
  stack.linear(name + ".attn.c_proj", d, d, shape.sequence);
  stack.layer_norm(name + ".ln_2", d);
  stack.linear(name + ".mlp.c_fc", d, 4 * d, shape.sequence);
  stack.linear(name + ".mlp.c_proj", 4 * d, d, shape.sequence);
  stack.end_block(name, shape.sequence * d, two_halves(shape.sequence, d));
}

}  // namespace

Model bert(std::string_view name, std::string_view summary, const BertShape& shape) {
  const std::int64_t d = shape.features;
  LayerStack stack;
  stack.embedding("bert.embeddings.word_embeddings", shape.vocabulary, d);
  stack.embedding("bert.embeddings.position_embeddings", shape.positions, d);
  stack.embedding("bert.embeddings.token_type_embeddings", 2, d);
  stack.layer_norm("bert.embeddings.LayerNorm", d);
  stack.end_block("bert.embeddings", shape.sequence * d, {shape.sequence * d});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    bert_block(stack, fmt::format("bert.encoder.layer.{}", layer), shape);
  }
  stack.linear("bert.pooler.dense", d, d);
  stack.linear("cls.predictions.transform.dense", d, d, shape.masked);
  stack.layer_norm("cls.predictions.transform.LayerNorm", d);
  stack.matrix_product(shape.masked, d, shape.vocabulary);
  stack.bias("cls.predictions.bias", shape.vocabulary);
  stack.linear("cls.seq_relationship", d, 2);
  stack.end_block("cls", shape.masked * shape.vocabulary);
  return stack.finish(name, summary);
}

Model gpt2(std::string_view name, std::string_view summary, const GptShape& shape) {
  const std::int64_t d = shape.features;
  LayerStack stack;
  stack.embedding("transformer.wte", shape.vocabulary, d);
  stack.embedding("transformer.wpe", shape.sequence, d);
  stack.end_block("transformer.embeddings", shape.sequence * d, {shape.sequence * d});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    gpt_block(stack, fmt::format("transformer.h.{}", layer), shape);
  }
  stack.layer_norm("transformer.ln_f", d);
  stack.matrix_product(shape.sequence, d, shape.vocabulary);
  stack.end_block("lm_head", shape.sequence * shape.vocabulary);
  return stack.finish(name, summary);
}

}  // namespace polyring
