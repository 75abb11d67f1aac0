#include "models/input_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>

#include "base/error.hpp"

namespace polyring {

namespace {

struct DataSet {
  std::string_view name;
  std::uint64_t bytes;  // of a sample
  std::string_view source;
};

constexpr std::array data_sets{
    // 147,897,477,120 bytes / 1,281,167 images
    DataSet{
        "imagenet-1k", 115439,
        "ImageNet-1K: JPEG files as distributed, the 147,897,477,120 bytes of ILSVRC2012_img_train.tar over "
        "1,281,167 images (Russakovsky et al., arXiv 1409.0575)"},
    DataSet{"climate", 16ull * 768 * 1152 * 4,
            "climate: 16 channels of 768x1152 in float32 (Kurth et al., Exascale Deep Learning for Climate "
            "Analytics, SC18, arXiv 1810.01993)"},
};

constexpr std::array imagenet_models{"resnet50", "resnet101", "resnet152", "vgg16", "inception3", "vit-l16"};

const DataSet* find_data_set(std::string_view name) {
  const auto* found = std::find_if(data_sets.begin(), data_sets.end(),
                                   [&](const DataSet& data_set) { return data_set.name == name; });
  return found == data_sets.end() ? nullptr : found;
}

SampleSize sample_size(const DataSet& data_set) { return {{data_set.bytes}, std::string(data_set.source)}; }

}  // namespace

std::optional<SampleSize> sample_size_of_model(std::string_view model) {
  if (model == "deeplabv3plus") return sample_size(*find_data_set("climate"));
  if (std::find(imagenet_models.begin(), imagenet_models.end(), model) == imagenet_models.end())
    return std::nullopt;
  return sample_size(*find_data_set("imagenet-1k"));
}

SampleSize parse_sample_size(std::string_view text, const std::string& source) {
  if (const DataSet* known = find_data_set(text)) return sample_size(*known);
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) {
    usage_error("'{}' is neither the size of a sample nor a data set; write it as 110KB, or choose one of {}",
                text, data_set_names());
  }
  const Bytes bytes = parse_bytes(text, "the size of a sample");
  if (bytes.value == 0) usage_error("a sample of 0 bytes needs no feeding; give its size, such as 110KB");
  return {bytes, source};
}

std::string data_set_names() {
  std::string names;
  for (const DataSet& data_set : data_sets)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", data_set.name);
  return names;
}

std::string_view to_text(Limit limit) {
  switch (limit) {
    case Limit::compute:
      return "compute";
    case Limit::network:
      return "network";
    case Limit::filesystem:
      return "data (file system)";
    case Limit::nvme:
      return "data (NVMe)";
  }
  return {};
}

Limit limit_of(const Step& step) {
  Seconds communication;
  for (const BucketTimes& bucket : step.buckets)
    communication = communication + bucket.communication.duration();
  const Seconds compute = step.total() - step.exposed_communication();
  return communication > compute ? Limit::network : Limit::compute;
}

FedStep feed(const InputPipeline& input, Seconds step, Limit limit, double samples, int hosts) {
  assert(step.value > 0 && samples > 0 && hosts > 0);
  const double bytes = samples * static_cast<double>(input.sample.bytes.value);
  FedStep fed{step, limit, {bytes / step.value}};
  const auto wait_for = [&](Bandwidth storage, Limit its_limit) {
    if (!storage.known() || bytes / storage.value <= fed.time.value) return;
    fed.time = {bytes / storage.value};
    fed.limit = its_limit;
  };
  wait_for(input.filesystem, Limit::filesystem);
  wait_for(hosts * input.nvme, Limit::nvme);
  return fed;
}

}  // namespace polyring
