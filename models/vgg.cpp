// VGG-16 (Simonyan and Zisserman, arXiv 1409.1556, configuration D), with the layer numbers of torchvision.
#include <fmt/format.h>

#include <array>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

Model vgg16(std::string_view name, std::string_view summary) {
  struct Stage {
    int convolutions;
    std::int64_t channels;
  };
  constexpr std::array<Stage, 5> stages{{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}};

  LayerStack stack;
  std::int64_t in = 3;
  std::int64_t size = 224;
  int index = 0;  // of the module: each convolution is followed by a ReLU, each stage by a max-pool
  for (const Stage& stage : stages) {
    for (int i = 0; i < stage.convolutions; ++i) {
      stack.convolution(fmt::format("features.{}", index), in, stage.channels, 3, size, /*bias=*/true);
      in = stage.channels;
      const bool pooled = i + 1 == stage.convolutions;
      if (pooled) size /= 2;
      if (pooled) stack.keep({.whole = in * size * size});  // the pool's output is the next layer's input
      stack.end_block(fmt::format("features.{}", index), in * size * size);
      index += pooled ? 3 : 2;
    }
  }
  const auto classifier = [&](const char* layer, std::int64_t features, std::int64_t out) {
    stack.linear(layer, features, out);
    stack.end_block(layer, out);
  };
  classifier("classifier.0", in * size * size, 4096);
  classifier("classifier.3", 4096, 4096);
  classifier("classifier.6", 4096, 1000);
  return stack.finish(name, summary);
}

}  // namespace polyring
