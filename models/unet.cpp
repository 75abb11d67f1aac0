// The U-Net of Stable Diffusion 1.x (Rombach et al., arXiv 2112.10752; CompVis/stable-diffusion,
// configs/stable-diffusion/v1-inference.yaml), with the layout and names of Hugging Face's
// UNet2DConditionModel. Its samples are latents of 4x64x64, of images of 512x512; the text is 77 tokens of
// 768 features. What makes latents and text of a data set is not trained, and not counted.
//
//   conv_in   ─ 64² ×320 ─────────────────────── 64² ×320 ─ conv_out
//                  └ 32² ×640 ───────────── 32² ×640 ┘         ┐ each level's outputs go to the other side,
//                  too
//                       └ 16² ×1280 ── 16² ×1280 ┘             ┘ (skip connections)
//                           └ 8² ×1280, mid ┘
#include <fmt/format.h>

#include <array>
#include <vector>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

namespace {

constexpr std::array<std::int64_t, 4> kChannels{320, 640, 1280, 1280};
constexpr std::int64_t kLatent = 64;
constexpr std::int64_t kTime = 1280;  // features of the time step
constexpr std::int64_t kTextTokens = 77;
constexpr std::int64_t kTextFeatures = 768;
constexpr std::int64_t kHeads = 8;
constexpr int kResnets = 2;  // of a level on the way down; one more on the way up

/// Adds the layers in forward order and remembers what crosses the places between blocks.
class UNet {
 public:
  Model build(std::string_view name, std::string_view summary) {
    stack_.convolution("conv_in", 4, kChannels[0], 3, size_, true);
    stack_.linear("time_embedding.linear_1", kChannels[0], kTime);
    stack_.linear("time_embedding.linear_2", kTime, kTime);
    channels_ = kChannels[0];
    push_skip();
    end("conv_in");
    for (std::size_t level = 0; level < kChannels.size(); ++level) down(level);
    middle();
    for (std::size_t level = kChannels.size(); level-- > 0;) up(level);
    group_norm("conv_norm_out", kChannels[0], true);
    stack_.convolution("conv_out", kChannels[0], 4, 3, size_, true);
    end("conv_out");
    return stack_.finish(name, summary);
  }

 private:
  std::int64_t positions() const { return size_ * size_; }
  std::int64_t current() const { return channels_ * positions(); }

  void push_skip() {
    skips_.push_back({channels_, current()});
    skipped_ += current();
  }

  /// The tensor, all skip connections that are open, and the time step's features go on.
  void end(const std::string& name) { stack_.end_block(name, current() + skipped_ + kTime); }

  /// Its output is kept; and that of the SiLU behind it, where there is one.
  void group_norm(const std::string& name, std::int64_t channels, bool silu) {
    stack_.layer_norm(name, channels);
    stack_.keep({.whole = (silu ? 2 : 1) * channels * positions()});
  }

  /// The current tensor with `skipped` channels beside it, to `out` channels.
  void resnet(const std::string& name, std::int64_t out, std::int64_t skipped = 0) {
    const std::int64_t in = channels_ + skipped;
    group_norm(name + ".norm1", in, true);
    stack_.convolution(name + ".conv1", in, out, 3, size_, true);
    stack_.linear(name + ".time_emb_proj", kTime, out);
    group_norm(name + ".norm2", out, true);
    stack_.convolution(name + ".conv2", out, out, 3, size_, true);
    if (in != out) stack_.convolution(name + ".conv_shortcut", in, out, 1, size_, true);
    channels_ = out;
  }

  /// Attention of all positions to `tokens` of `features`.
  void attention(const std::string& name, std::int64_t tokens, std::int64_t features) {
    const std::int64_t c = channels_;
    const std::int64_t n = positions();
    stack_.linear(name + ".to_q", c, c, n, false);
    stack_.linear(name + ".to_k", features, c, tokens, false);
    stack_.linear(name + ".to_v", features, c, tokens, false);
    stack_.attention_products(n, tokens, c);
    stack_.linear(name + ".to_out.0", c, c, n);
    // The norm's input and output; queries, keys, values; the input of the output projection.
    stack_.keep({.whole = 4 * n * c + 2 * tokens * c, .scores = 2 * kHeads * n * tokens});
  }

  /// To itself, to the text, and a feed-forward layer whose first half is multiplied with the GELU of its
  /// second.
  void transformer(const std::string& name) {
    const std::int64_t c = channels_;
    const std::int64_t n = positions();
    const std::string block = name + ".transformer_blocks.0";
    group_norm(name + ".norm", c, false);
    stack_.convolution(name + ".proj_in", c, c, 1, size_, true);
    stack_.layer_norm(block + ".norm1", c);
    attention(block + ".attn1", n, c);
    stack_.layer_norm(block + ".norm2", c);
    attention(block + ".attn2", kTextTokens, kTextFeatures);
    stack_.layer_norm(block + ".norm3", c);
    stack_.linear(block + ".ff.net.0.proj", c, 8 * c, n);
    stack_.linear(block + ".ff.net.2", 4 * c, c, n);
    stack_.keep({.whole = 2 * n * c + (8 + 4 + 4) * n * c});
    stack_.convolution(name + ".proj_out", c, c, 1, size_, true);
  }

  /// All levels but the innermost attend.
  static bool attends(std::size_t level) { return level + 1 < kChannels.size(); }

  void down(std::size_t level) {
    const std::string name = fmt::format("down_blocks.{}", level);
    for (int i = 0; i < kResnets; ++i) {
      resnet(fmt::format("{}.resnets.{}", name, i), kChannels.at(level));
      if (attends(level)) transformer(fmt::format("{}.attentions.{}", name, i));
      push_skip();
      end(fmt::format("{}.{}", name, i));
    }
    if (!attends(level)) return;
    size_ /= 2;
    stack_.convolution(name + ".downsamplers.0.conv", channels_, channels_, 3, size_, true);
    push_skip();
    end(name + ".downsamplers.0");
  }

  void middle() {
    resnet("mid_block.resnets.0", channels_);
    transformer("mid_block.attentions.0");
    resnet("mid_block.resnets.1", channels_);
    end("mid_block");
  }

  /// The levels on the way up are numbered from the innermost.
  void up(std::size_t level) {
    const std::size_t number = kChannels.size() - 1 - level;
    const std::string name = fmt::format("up_blocks.{}", number);
    for (int i = 0; i <= kResnets; ++i) {
      const Skip skip = skips_.back();
      skips_.pop_back();
      skipped_ -= skip.elements;
      resnet(fmt::format("{}.resnets.{}", name, i), kChannels.at(level), skip.channels);
      if (attends(level)) transformer(fmt::format("{}.attentions.{}", name, i));
      if (i == kResnets && level > 0) {
        size_ *= 2;
        stack_.convolution(name + ".upsamplers.0.conv", channels_, channels_, 3, size_, true);
      }
      end(fmt::format("{}.{}", name, i));
    }
  }

  struct Skip {
    std::int64_t channels = 0;
    std::int64_t elements = 0;
  };

  LayerStack stack_;
  std::int64_t size_ = kLatent;
  std::int64_t channels_ = 0;
  std::vector<Skip> skips_;
  std::int64_t skipped_ = 0;  // elements of all of them
};

}  // namespace

Model stable_diffusion(std::string_view name, std::string_view summary) {
  return UNet().build(name, summary);
}

}  // namespace polyring
