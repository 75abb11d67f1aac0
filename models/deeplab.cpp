// DeepLabv3+ as it was trained on climate data (Kurth et al., Exascale Deep Learning for Climate Analytics,
// SC18, arXiv 1810.01993, figure 1): samples of 16 channels of 768×1152 points; each point gets one of three
// classes. A ResNet-50 v2 that keeps an eighth of the resolution, atrous spatial pyramid pooling,
// and a decoder of transposed convolutions up to the full resolution. Without batch normalisation, as the
// authors' runs in single precision had it.
//
// Layers as in the authors' code (azrael417/ClimDeepLearn and sparticlesteve/climate-seg-benchmark,
// deeplab-tf/deeplab_model.py, `deconv1x`), whose log counts 43,669,251 parameters. Its 14.41 TFLOP a sample
// also count the zeros that pad atrous convolutions; those are left out here.
#include <fmt/format.h>

#include "models/families.hpp"
#include "models/layers.hpp"

namespace polyring {

namespace {

constexpr Extent full{768, 1152};
constexpr Extent half{384, 576};
constexpr Extent quarter{192, 288};
constexpr Extent eighth{96, 144};

/// Pre-activation bottlenecks (He et al., arXiv 1603.05027), the first with a projection on its shortcut; the
/// last one has the stride, if there is any.
void residual_block(LayerStack& stack, const std::string& name, std::int64_t in, std::int64_t width,
                    int units, Extent before, Extent after) {
  const std::int64_t out = 4 * width;
  for (int unit = 1; unit <= units; ++unit) {
    const std::string prefix = fmt::format("{}.unit_{}", name, unit);
    const Extent at = unit == units ? after : before;
    if (unit == 1) stack.convolution(prefix + ".shortcut", in, out, 1, before, true);
    stack.convolution(prefix + ".conv1", unit == 1 ? in : out, width, 1, before);
    stack.convolution(prefix + ".conv2", width, width, 3, at);
    stack.convolution(prefix + ".conv3", width, out, 1, at, true);
  }
}

/// Atrous convolutions at several rates side by side, and the mean over the whole image.
void pyramid_pooling(LayerStack& stack, std::int64_t in, std::int64_t out) {
  stack.convolution("aspp.conv_1x1", in, out, 1, eighth);
  for (const int rate : {12, 24, 36})
    stack.convolution(fmt::format("aspp.rate_{}", rate), in, out, 3, eighth);
  stack.convolution("aspp.image_level", in, out, 1, 1);
  stack.convolution("aspp.conv_1x1_concat", 5 * out, out, 1, eighth);
}

/// A transposed convolution multiplies each point of its input with the kernel: it costs what a convolution
/// with that many outputs does.
void decoder(LayerStack& stack, std::int64_t in, std::int64_t channels, std::int64_t classes) {
  constexpr std::int64_t low_level = 48;
  stack.convolution("decoder.low_level", 64, low_level, 1, quarter);
  stack.convolution("decoder.deconv1", in, in, 3, eighth, true);
  stack.convolution("decoder.conv1", in + low_level, in, 3, quarter);
  stack.convolution("decoder.conv2", in, in, 3, quarter);
  stack.convolution("decoder.deconv2", in, in, 3, quarter, true);
  stack.convolution("decoder.deconv3", in, in, 3, half, true);
  stack.convolution("decoder.skip1", channels, 64, 3, full, true);
  stack.convolution("decoder.skip2", 64, 128, 3, full, true);
  stack.convolution("decoder.conv3", in + 128, in, 3, full, true);
  stack.convolution("decoder.conv4", in, in, 3, full, true);
  stack.convolution("decoder.logits", in, classes, 1, full, true);
}

}  // namespace

Model deeplab(std::string_view name, std::string_view summary) {
  constexpr std::int64_t channels = 16;
  constexpr std::int64_t classes = 3;
  LayerStack stack;
  stack.convolution("resnet.conv1", channels, 64, 7, half, true);
  residual_block(stack, "resnet.block1", 64, 64, 3, quarter, eighth);  // after a max-pool
  residual_block(stack, "resnet.block2", 256, 128, 4, eighth, eighth);
  residual_block(stack, "resnet.block3", 512, 256, 6, eighth, eighth);
  residual_block(stack, "resnet.block4", 1024, 512, 3, eighth, eighth);
  pyramid_pooling(stack, 2048, 256);
  decoder(stack, 256, channels, classes);
  // The decoder reads the sample and the first block again: nowhere does one tensor alone go on.
  stack.end_block("deeplab", 0);
  return stack.finish(name, summary);
}

}  // namespace polyring
