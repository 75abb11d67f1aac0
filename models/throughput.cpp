#include "models/throughput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/gpu_peaks.hpp"
#include "models/model.hpp"

namespace polyring {

namespace {

constexpr const char* tensorflow_2017 =
    "TensorFlow benchmarks (tensorflow.org/performance/benchmarks), NVIDIA DGX-1, 1x P100, synthetic data, "
    "float32, "
    "May 2017";
constexpr const char* nvidia_v100_16gb =
    "NVIDIA DeepLearningExamples, MxNet/Classification/RN50v1.5/README.md, DGX-1 V100 16GB, 1 GPU, ImageNet, "
    "container mxnet-20.12";
constexpr const char* nvidia_v100_32gb =
    "NVIDIA DeepLearningExamples, MxNet/Classification/RN50v1.5/README.md, DGX-2 V100 32GB, 1 GPU, ImageNet, "
    "container mxnet-20.12";
constexpr const char* kurth_v100 =
    "Kurth et al., Exascale Deep Learning for Climate Analytics, SC18, arXiv 1810.01993, figure 2: one V100 "
    "of "
    "Summit, single precision: 0.87 samples/s, 14.41 TFLOP a sample";
constexpr const char* nvidia_a100 =
    "NVIDIA DeepLearningExamples, MxNet/Classification/RN50v1.5/README.md, DGX A100 80GB, 1 GPU, ImageNet, "
    "container mxnet-20.12, single precision is TF32";
constexpr const char* nvidia_a100_2022 =
    "NVIDIA DeepLearningExamples, MxNet/Classification/RN50v1.5/README.md, DGX A100 80GB, 1 GPU, ImageNet, "
    "container mxnet-22.10, single precision is TF32";
constexpr const char* nvidia_bert =
    "NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT/README.md, pretraining, 1 GPU, container "
    "pytorch-21.11, DGX A100 80GB and DGX-1 V100 32GB";
constexpr const char* nvidia_bert_tensorflow =
    "NVIDIA DeepLearningExamples, TensorFlow/LanguageModeling/BERT/README.md, pretraining, 1 GPU, container "
    "tensorflow-20.06, DGX-1 V100 16GB and DGX A100 40GB (single precision is TF32)";
constexpr const char* lambda =
    "Lambda, deeplearning-benchmark, pytorch/pytorch-train-throughput-*.csv, ResNet-50 v1.5 of NVIDIA "
    "DeepLearningExamples, 1 GPU, synthetic data, fp32 scripts use TF32 where there is some; batches of "
    "pytorch-train-bs-*.csv and scripts/config_v2";
constexpr const char* paddle =
    "PaddlePaddle Fleet, deprecated/fleet_x/docs/source/paddle_fleet, benchmarks of ResNet-50 and VGG-16, "
    "one "
    "V100 SXM2 32GB";
constexpr const char* timm =
    "timm, results/benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv (huggingface/pytorch-image-models), "
    "PyTorch 1.12, channels last";

std::vector<Throughput> cited() {
  using enum Precision;
  return {
      {"P100", "resnet50", 32, single, 195, tensorflow_2017},
      {"P100", "resnet50", 64, single, 219, tensorflow_2017},
      {"P100", "resnet152", 32, single, 82.7, tensorflow_2017},
      {"P100", "resnet152", 64, single, 91.8, tensorflow_2017},
      {"P100", "inception3", 32, single, 128, tensorflow_2017},
      {"P100", "inception3", 64, single, 142, tensorflow_2017},
      {"P100", "vgg16", 32, single, 144, tensorflow_2017},
      {"P100", "vgg16", 64, single, 154, tensorflow_2017},
      {"V100", "resnet50", 96, single, 384, nvidia_v100_16gb},
      {"V100", "resnet50", 128, single, 417, nvidia_v100_32gb},
      {"V100", "resnet50", 192, mixed, 1376, nvidia_v100_16gb},
      {"V100", "resnet50", 256, mixed, 1492, nvidia_v100_32gb},
      {"V100", "resnet50", 32, single, 335.43, paddle},
      {"V100", "resnet50", 32, mixed, 740.01, paddle},
      {"V100", "resnet50", 64, mixed, 919.95, paddle},
      {"V100", "vgg16", 32, single, 252.68, paddle},
      {"V100", "vgg16", 128, single, 266.24, paddle},
      {"V100", "vgg16", 32, mixed, 407.69, paddle},
      {"V100", "vgg16", 64, mixed, 468.51, paddle},
      {"V100", "vgg16", 128, mixed, 512.02, paddle},
      {"V100", "deeplabv3plus", 1, single, 0.87, kurth_v100},
      {"A100", "resnet50", 256, single, 1022, nvidia_a100},
      {"A100", "resnet50", 256, mixed, 2180, nvidia_a100},
      {"A100", "resnet50", 512, single, 1055.78, nvidia_a100_2022},
      {"A100", "resnet50", 512, mixed, 3410.52, nvidia_a100_2022},
      {"H100", "resnet50", 640, single, 1893, lambda},
      {"H100", "resnet50", 1280, mixed, 2776, lambda},
      {"H100 PCIe", "resnet50", 640, single, 1197, lambda},
      {"H100 PCIe", "resnet50", 1280, mixed, 1866, lambda},
      {"H200", "resnet50", 1280, single, 2259, lambda},
      {"H200", "resnet50", 2560, mixed, 3079, lambda},
      {"GH200", "resnet50", 720, single, 2063, lambda},
      {"GH200", "resnet50", 1360, mixed, 2844, lambda},
      {"RTX 8000", "resnet50", 496, single, 274, lambda},
      {"RTX 8000", "resnet50", 928, mixed, 651, lambda},
      {"A10", "resnet50", 224, single, 349, lambda},
      {"A10", "resnet50", 448, mixed, 638, lambda},
      {"A6000", "resnet50", 496, single, 514, lambda},
      {"A6000", "resnet50", 928, mixed, 916, lambda},
      {"RTX 3090", "resnet50", 224, single, 513, lambda},
      {"RTX 4090", "resnet50", 224, single, 721, lambda},
      {"RTX 4090", "resnet50", 448, mixed, 1301, lambda},
      {"RTX 3090", "resnet50", 512, mixed, 1218.01, timm},
      {"RTX 3090", "resnet101", 256, mixed, 747.89, timm},
      {"RTX 3090", "resnet152", 192, mixed, 501.44, timm},
      {"RTX 3090", "inception3", 384, mixed, 782.35, timm},
      {"RTX 3090", "vgg16", 384, mixed, 546.06, timm},
      {"RTX 3090", "vit-l16", 64, mixed, 117.2, timm},
      {"V100", "bert-large", 8, single, 39.43, nvidia_bert_tensorflow},
      {"V100", "bert-large", 16, mixed, 134.34, nvidia_bert_tensorflow},
      {"V100", "bert-large", 32, single, 50, nvidia_bert},
      {"V100", "bert-large", 64, mixed, 224, nvidia_bert},
      {"A100", "bert-large", 64, single, 238.10, nvidia_bert_tensorflow},
      {"A100", "bert-large", 64, mixed, 356.845, nvidia_bert_tensorflow},
      {"A100", "bert-large", 256, mixed, 580, nvidia_bert},
  };
}

Throughput interpolate(const Throughput& low, const Throughput& high, const std::string& name) {
  const double low_flops = make_model(low.model).flops_per_sample();
  const double fraction = (make_model(name).flops_per_sample() - low_flops) /
                          (make_model(high.model).flops_per_sample() - low_flops);
  const double seconds = (1 - fraction) / low.samples_per_second + fraction / high.samples_per_second;
  return {low.gpu,
          name,
          low.batch,
          low.precision,
          1 / seconds,
          fmt::format("derived: time per image interpolated in FLOPs between {} and {} of: {}", low.model,
                      high.model, low.source)};
}

bool same_conditions(const Throughput& a, const Throughput& b) {
  return a.gpu == b.gpu && a.batch == b.batch && a.precision == b.precision;
}

std::vector<Throughput> cited_and_derived() {
  const std::vector<Throughput> known = cited();
  std::vector<Throughput> all = known;
  for (const Throughput& low : known) {
    for (const Throughput& high : known) {
      if (low.model != "resnet50" || high.model != "resnet152" || !same_conditions(low, high)) continue;
      for (const char* name : {"resnet101", "resnet101-22k"}) all.push_back(interpolate(low, high, name));
    }
  }
  return all;
}

/// Of a product's variants with other peaks only those are the same GPU that are so near.
constexpr double kSamePeak = 0.15;

/// Whether what is known of `gpu` holds for `product`.
bool is_same_gpu(std::string_view product, const std::string& gpu) {
  if (!names_gpu(product, gpu)) return false;
  const GpuPeak* of_product = find_gpu_peak(product);
  const GpuPeak* known = find_gpu_peak(gpu);
  if (of_product == nullptr || known == nullptr) return true;
  return std::abs(of_product->float32 / known->float32 - 1) <= kSamePeak;
}

}  // namespace

const std::vector<Throughput>& known_throughputs() {
  static const std::vector<Throughput> all = cited_and_derived();
  return all;
}

std::optional<Throughput> find_throughput(std::string_view gpu, std::string_view model, int batch,
                                          Precision precision) {
  for (const Throughput& known : known_throughputs()) {
    if (known.model == model && known.batch == batch && known.precision == precision &&
        is_same_gpu(gpu, known.gpu)) {
      return known;
    }
  }
  return std::nullopt;
}

std::vector<Throughput> throughputs_of(std::string_view gpu, std::string_view model, Precision precision) {
  std::vector<Throughput> all;
  for (const Throughput& known : known_throughputs()) {
    if (known.model == model && known.precision == precision && is_same_gpu(gpu, known.gpu))
      all.push_back(known);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Throughput& a, const Throughput& b) { return a.batch < b.batch; });
  return all;
}

std::string throughput_choices() {
  const auto& all = known_throughputs();
  const auto heading = [](const Throughput& t) { return t.gpu + " " + t.model; };
  std::string text;
  for (auto first = all.begin(); first != all.end(); ++first) {
    const auto same = [&](const Throughput& t) { return heading(t) == heading(*first); };
    if (std::find_if(all.begin(), first, same) != first) continue;  // listed with an earlier one
    std::string batches;
    for (const Throughput& t : all) {
      if (!same(t)) continue;
      batches += fmt::format("{}{}{}", batches.empty() ? "" : ", ", t.batch,
                             t.precision == Precision::mixed ? " mixed" : "");
    }
    text += fmt::format("{}{} (batch {})", text.empty() ? "" : ", ", heading(*first), batches);
  }
  return text;
}

}  // namespace polyring
