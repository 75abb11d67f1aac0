#include "reports/published.hpp"

#include <array>

namespace polyring {
namespace {

constexpr std::array kDdlCaffe{
    PublishedPoint{4, 1.0, 1.00},    PublishedPoint{8, 2.0, 1.00},   PublishedPoint{16, 3.9, 0.98},
    PublishedPoint{32, 7.9, 0.99},   PublishedPoint{64, 15.5, 0.97}, PublishedPoint{128, 30.5, 0.95},
    PublishedPoint{256, 60.6, 0.95},
};

constexpr std::array kFair{
    PublishedPoint{8, std::nullopt, 1.00},
    PublishedPoint{256, std::nullopt, 0.89},
    PublishedPoint{352, std::nullopt, 0.88},
};

constexpr std::array kSeries{
    PublishedScaling{
        "IBM PowerAI DDL, Caffe, ResNet-50 on ImageNet-1K", "minsky", "resnet50", "multi-ring", std::nullopt,
        "Cho et al., PowerAI DDL, arXiv:1708.02188, 2017: ResNet-50 for 1K classes using up to 256 GPUs "
        "with Caffe; one node of 4 GPUs is 1.0",
        kDdlCaffe},
    PublishedScaling{
        "Facebook, Caffe2 with Gloo, ResNet-50 on ImageNet-1K", "big-basin", "resnet50", "halving-doubling",
        32,
        "Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, arXiv:1706.02677, "
        "2017; one server of 8 GPUs is 1.0; 352 GPUs from the 12 % growth of the iteration time",
        kFair},
};

constexpr std::string_view kDdlTorch =
    "Cho et al., PowerAI DDL, arXiv:1708.02188, 2017: 90 epochs of ImageNet-1K (1,281,167 images) on 256 "
    "GPUs in batches of 8,192";
constexpr std::string_view kDdl22k =
    "Cho et al., PowerAI DDL, arXiv:1708.02188, 2017, in batches of 5,120, and IBM Research, August 2017; "
    "the claims disagree";

constexpr std::array kClaims{
    PublishedClaim{"IBM PowerAI DDL, Torch, ResNet-50 on ImageNet-1K", "minsky", "resnet50", "multi-ring",
                   256, "90 epochs in 50 minutes: 38,400 images/s", std::nullopt, 38400, 8192 / 256,
                   kDdlTorch},
    PublishedClaim{"IBM PowerAI DDL, Caffe, ResNet-101 on ImageNet-22K", "minsky", "resnet101-22k",
                   "multi-ring", 256, "88 % as stated", 0.88, std::nullopt, 5120 / 256, kDdl22k},
    PublishedClaim{"IBM PowerAI DDL, Caffe, ResNet-101 on ImageNet-22K", "minsky", "resnet101-22k",
                   "multi-ring", 256, "58 times one of 64 servers", 58.0 / 64, std::nullopt, 5120 / 256,
                   kDdl22k},
    PublishedClaim{"IBM PowerAI DDL, Caffe, ResNet-101 on ImageNet-22K", "minsky", "resnet101-22k",
                   "multi-ring", 256, "16 days became 7 hours", 16 * 24 / 7.0 / 64, std::nullopt, 5120 / 256,
                   kDdl22k},
    PublishedClaim{
        "DeepLabv3+ on climate data, Summit", "summit", "deeplabv3plus", "multi-ring", 27360,
        "90.7 % in single precision", 0.907, std::nullopt, 1,
        "Kurth et al., Exascale Deep Learning for Climate Analytics, SC18, abstract; one sample a GPU: "
        "azrael417/ClimDeepLearn, semanticsegm/run_scripts/summit/run_deeplab_deconv.sh"},
};

}  // namespace

std::span<const PublishedScaling> published_scaling() { return kSeries; }

std::span<const PublishedClaim> published_claims() { return kClaims; }

const PublishedScaling* find_published(std::string_view machine, std::string_view model,
                                       std::string_view algorithm) {
  for (const PublishedScaling& series : kSeries) {
    if (series.machine == machine && series.model == model && series.algorithm == algorithm) return &series;
  }
  return nullptr;
}

const PublishedPoint* find_point(const PublishedScaling* series, int gpus) {
  if (series == nullptr) return nullptr;
  for (const PublishedPoint& point : series->points) {
    if (point.gpus == gpus) return &point;
  }
  return nullptr;
}

}  // namespace polyring
