// Inception v3 (Szegedy et al., arXiv 1512.00567), with the layout and names of torchvision and without the
// auxiliary classifier. Every convolution is followed by a batch normalisation and has no bias.
#include <fmt/format.h>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

namespace {

/// Adds one module's convolutions: the module has a name, an output size and, for its branches, input
/// channels.
class Module {
 public:
  Module(LayerStack& stack, std::string name, std::int64_t in, std::int64_t size)
      : stack_(stack), name_(std::move(name)), in_(in), size_(size) {}

  /// A chain of convolutions that starts from the module's input.
  Module& branch(const std::string& name, std::int64_t out, Extent kernel = 1) {
    return convolution(name, in_, out, kernel, size_);
  }
  /// The next convolution of the chain.
  Module& then(const std::string& name, std::int64_t out, Extent kernel) {
    return convolution(name, last_out_, out, kernel, size_);
  }
  /// The next convolution of the chain, 3×3 with stride 2 and no padding.
  Module& then_halved(const std::string& name, std::int64_t out) {
    return convolution(name, last_out_, out, 3, halved(size_));
  }
  Module& branch_halved(const std::string& name, std::int64_t out) {
    return convolution(name, in_, out, 3, halved(size_));
  }
  /// Two convolutions, 1×3 and 3×1, that both read the end of the chain; their outputs stand side by side.
  Module& split(const std::string& name, std::int64_t out) {
    const std::int64_t in = last_out_;
    convolution(name + "a", in, out, {1, 3}, size_);
    return convolution(name + "b", in, out, {3, 1}, size_);
  }

  static std::int64_t halved(std::int64_t size) { return (size - 3) / 2 + 1; }

 private:
  Module& convolution(const std::string& name, std::int64_t in, std::int64_t out, Extent kernel,
                      std::int64_t size) {
    stack_.convolution(fmt::format("{}.{}.conv", name_, name), in, out, kernel, size);
    stack_.batch_norm(fmt::format("{}.{}.bn", name_, name), out);
    last_out_ = out;
    return *this;
  }

  LayerStack& stack_;
  std::string name_;
  std::int64_t in_;
  std::int64_t size_;
  std::int64_t last_out_ = 0;
};

/// 299×299×3 to 35×35×192.
void stem(LayerStack& stack) {
  const auto add = [&](const std::string& name, std::int64_t in, std::int64_t out, Extent kernel,
                       std::int64_t size) {
    stack.convolution(name + ".conv", in, out, kernel, size);
    stack.batch_norm(name + ".bn", out);
  };
  add("Conv2d_1a_3x3", 3, 32, 3, 149);
  add("Conv2d_2a_3x3", 32, 32, 3, 147);
  add("Conv2d_2b_3x3", 32, 64, 3, 147);
  add("Conv2d_3b_1x1", 64, 80, 1, 73);  // after a max-pool
  add("Conv2d_4a_3x3", 80, 192, 3, 71);
  stack.end_block("Conv2d", 192 * 35 * 35);  // after a max-pool
}

/// 35×35 modules: `pool` channels come from the pooled branch. Returns 224 + pool channels.
std::int64_t module_a(LayerStack& stack, const std::string& name, std::int64_t in, std::int64_t pool) {
  Module(stack, name, in, 35)
      .branch("branch1x1", 64)
      .branch("branch5x5_1", 48)
      .then("branch5x5_2", 64, 5)
      .branch("branch3x3dbl_1", 64)
      .then("branch3x3dbl_2", 96, 3)
      .then("branch3x3dbl_3", 96, 3)
      .branch("branch_pool", pool);
  stack.end_block(name, (224 + pool) * 35 * 35);
  return 224 + pool;
}

/// 17×17 modules with factored 7×7 convolutions of `c` channels; 768 channels in and out.
void module_c(LayerStack& stack, const std::string& name, std::int64_t c) {
  const Extent row{1, 7};
  const Extent column{7, 1};
  Module(stack, name, 768, 17)
      .branch("branch1x1", 192)
      .branch("branch7x7_1", c)
      .then("branch7x7_2", c, row)
      .then("branch7x7_3", 192, column)
      .branch("branch7x7dbl_1", c)
      .then("branch7x7dbl_2", c, column)
      .then("branch7x7dbl_3", c, row)
      .then("branch7x7dbl_4", c, column)
      .then("branch7x7dbl_5", 192, row)
      .branch("branch_pool", 192);
  stack.end_block(name, 768 * 17 * 17);
}

/// 8×8 modules; 2048 channels out.
void module_e(LayerStack& stack, const std::string& name, std::int64_t in) {
  Module(stack, name, in, 8)
      .branch("branch1x1", 320)
      .branch("branch3x3_1", 384)
      .split("branch3x3_2", 384)
      .branch("branch3x3dbl_1", 448)
      .then("branch3x3dbl_2", 384, 3)
      .split("branch3x3dbl_3", 384)
      .branch("branch_pool", 192);
  stack.end_block(name, 2048 * 8 * 8);
}

}  // namespace

Model inception3(std::string_view name, std::string_view summary) {
  LayerStack stack;
  stem(stack);
  std::int64_t channels = module_a(stack, "Mixed_5b", 192, 32);
  channels = module_a(stack, "Mixed_5c", channels, 64);
  channels = module_a(stack, "Mixed_5d", channels, 64);
  Module(stack, "Mixed_6a", channels, 35)
      .branch_halved("branch3x3", 384)
      .branch("branch3x3dbl_1", 64)
      .then("branch3x3dbl_2", 96, 3)
      .then_halved("branch3x3dbl_3", 96);
  stack.end_block("Mixed_6a", 768 * 17 * 17);
  module_c(stack, "Mixed_6b", 128);
  module_c(stack, "Mixed_6c", 160);
  module_c(stack, "Mixed_6d", 160);
  module_c(stack, "Mixed_6e", 192);
  Module(stack, "Mixed_7a", 768, 17)
      .branch("branch3x3_1", 192)
      .then_halved("branch3x3_2", 320)
      .branch("branch7x7x3_1", 192)
      .then("branch7x7x3_2", 192, {1, 7})
      .then("branch7x7x3_3", 192, {7, 1})
      .then_halved("branch7x7x3_4", 192);
  stack.end_block("Mixed_7a", 1280 * 8 * 8);
  module_e(stack, "Mixed_7b", 1280);
  module_e(stack, "Mixed_7c", 2048);
  stack.linear("fc", 2048, 1000);
  stack.end_block("fc", 1000);
  return stack.finish(name, summary);
}

}  // namespace polyring
