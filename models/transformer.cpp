// Transformers: BERT (Devlin et al., arXiv 1810.04805) with the names of Hugging Face's BertForPreTraining,
// and GPT-2 (Radford et al., 2019) with those of its GPT2LMHeadModel. GPT-3 (Brown et al., arXiv 2005.14165)
// has the layers of GPT-2; that half of its layers attend to a local band only is left out, as others do
// who count its operations.
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

/// What a layer keeps for its backward pass (Korthikanti et al., arXiv 2205.05198, section 4.1). In elements
/// of two bytes and masks of one these are its s·h·(34 + 5·a·s/h) bytes, and s·h·(10 + 24/t + 5·a·s/(h·t)) on
/// each of t ranks.
void keep_layer(LayerStack& stack, std::int64_t sequence, std::int64_t features, std::int64_t heads) {
  const std::int64_t sh = sequence * features;
  const std::int64_t matrices = heads * sequence * sequence;
  // Whole: inputs of both norms, of the attention and of the first linear layer; the masks of two dropouts.
  // Split: queries, keys, values, the input of the attention's output; input and output of the GELU.
  stack.keep({.whole = 4 * sh,
              .split = 12 * sh,
              .scores = 2 * matrices,
              .mask_bytes = 2 * sh,
              .score_mask_bytes = matrices});
  stack.attention_heads({heads, heads});
}

void bert_block(LayerStack& stack, const std::string& name, const BertShape& shape) {
  const std::int64_t d = shape.features;
  for (const char* projection : {"query", "key", "value"}) {
    stack.linear(name + ".attention.self." + projection, d, d, shape.sequence);
  }
  stack.attention_products(shape.sequence, shape.sequence, d);
  stack.linear(name + ".attention.output.dense", d, d, shape.sequence);
  stack.layer_norm(name + ".attention.output.LayerNorm", d);
  stack.linear(name + ".intermediate.dense", d, 4 * d, shape.sequence);
  stack.linear(name + ".output.dense", 4 * d, d, shape.sequence);
  stack.layer_norm(name + ".output.LayerNorm", d);
  keep_layer(stack, shape.sequence, d, shape.heads);
  stack.end_block(name, shape.sequence * d, two_halves(shape.sequence, d));
}

void gpt_block(LayerStack& stack, const std::string& name, const GptShape& shape) {
  const std::int64_t d = shape.features;
  stack.layer_norm(name + ".ln_1", d);
  stack.linear(name + ".attn.c_attn", d, 3 * d, shape.sequence);
  stack.attention_products(shape.sequence, shape.sequence, d);
  stack.linear(name + ".attn.c_proj", d, d, shape.sequence);
  stack.layer_norm(name + ".ln_2", d);
  stack.linear(name + ".mlp.c_fc", d, 4 * d, shape.sequence);
  stack.linear(name + ".mlp.c_proj", 4 * d, d, shape.sequence);
  keep_layer(stack, shape.sequence, d, shape.heads);
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
  stack.keep({.whole = shape.sequence * d, .mask_bytes = shape.sequence * d});
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
  // Input of the linear layer, of its GELU, of the norm, and of the product with the vocabulary.
  stack.keep({.whole = 4 * shape.masked * d, .logits = shape.masked * shape.vocabulary});
  stack.end_block("cls", shape.masked * shape.vocabulary);
  return stack.finish(name, summary);
}

Model gpt2(std::string_view name, std::string_view summary, const GptShape& shape) {
  const std::int64_t d = shape.features;
  LayerStack stack;
  stack.embedding("transformer.wte", shape.vocabulary, d);
  stack.embedding("transformer.wpe", shape.sequence, d);
  stack.keep({.mask_bytes = shape.sequence * d});
  stack.end_block("transformer.embeddings", shape.sequence * d, {shape.sequence * d});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    gpt_block(stack, fmt::format("transformer.h.{}", layer), shape);
  }
  stack.layer_norm("transformer.ln_f", d);
  stack.matrix_product(shape.sequence, d, shape.vocabulary);
  // As in section 4.3 of that paper: input of the norm and of the product, logits in float32.
  stack.keep({.whole = 2 * shape.sequence * d, .logits = shape.sequence * shape.vocabulary});
  stack.end_block("lm_head", shape.sequence * shape.vocabulary);
  return stack.finish(name, summary);
}

}  // namespace polyring
