#include "models/throughput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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
      {"V100", "deeplabv3plus", 1, single, 0.87, kurth_v100},
      {"A100", "resnet50", 256, single, 1022, nvidia_a100},
      {"A100", "resnet50", 256, mixed, 2180, nvidia_a100},
  };
}

double flops(const Model& model) {
  return model.forward_flops_per_sample + model.backward_flops_per_sample();
}

Throughput interpolate(const Throughput& low, const Throughput& high, const std::string& name) {
  const double low_flops = flops(make_model(low.model));
  const double fraction = (flops(make_model(name)) - low_flops) / (flops(make_model(high.model)) - low_flops);
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

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether `word` is one of the words (runs of letters and digits) of `text`, in any case.
bool has_word(std::string_view text, std::string_view word) {
  auto begin = text.begin();
  while (begin != text.end()) {
    const auto end = std::find_if_not(begin, text.end(), is_word_character);
    if (std::equal(begin, end, word.begin(), word.end(),
                   [](char a, char b) { return lower(a) == lower(b); })) {
      return true;
    }
    begin = std::find_if(end, text.end(), is_word_character);
  }
  return false;
}

}  // namespace

std::string_view to_text(Precision precision) { return precision == Precision::single ? "single" : "mixed"; }

const std::vector<Throughput>& known_throughputs() {
  static const std::vector<Throughput> all = cited_and_derived();
  return all;
}

std::optional<Throughput> find_throughput(std::string_view gpu, std::string_view model, int batch,
                                          Precision precision) {
  for (const Throughput& known : known_throughputs()) {
    if (known.model == model && known.batch == batch && known.precision == precision &&
        has_word(gpu, known.gpu)) {
      return known;
    }
  }
  return std::nullopt;
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
