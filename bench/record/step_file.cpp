#include "bench/record/step_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/files.hpp"

namespace polyring {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "polyring-step";
/// Raised whenever a reader of the old version would misread the new one.
constexpr int kVersion = 1;
constexpr double kMostMs = 24 * 3600 * 1e3;
constexpr double kMostBatch = 1 << 20;
constexpr double kMostElements = 1e15;
constexpr std::size_t kLongestName = 400;

/// A file that is read, for errors. What nlohmann throws for a key that is missing or of another type ends
/// in one, too.
struct Reader {
  const std::string& file;

  [[noreturn]] void wrong(const std::string& what) const {
    usage_error("'{}' is no measured step, or damaged: {}; run scripts/measure_step again", file, what);
  }

  std::string text(const json& object, const char* key) const {
    auto value = object.at(key).get<std::string>();
    if (value.empty() || value.size() > kLongestName)
      wrong(fmt::format("{} has {} characters", key, value.size()));
    return value;
  }

  /// From `least` up to `most`.
  double number(const json& object, const char* key, double least, double most) const {
    const double value = object.at(key).get<double>();
    if (!(value >= least && value <= most)) wrong(fmt::format("{} is {}", key, value));
    return value;
  }

  /// From 1. The check comes on the double, which holds any number of the file.
  std::int64_t count(const json& object, const char* key, double most) const {
    const double value = number(object, key, 1, most);
    if (value != std::floor(value)) wrong(fmt::format("{} is {}", key, value));
    return static_cast<std::int64_t>(value);
  }

  Seconds median(const json& object, const char* key, double least_ms) const {
    const double ms = object.at(key).at("median").get<double>();
    if (!(ms >= least_ms && ms <= kMostMs))
      wrong(fmt::format("{} is {}, which is not from {} up to a day", key, ms, least_ms));
    return {ms * 1e-3};
  }

  Precision precision(const json& object) const {
    const std::string name = text(object, "precision");
    for (const Precision known : {Precision::single, Precision::mixed})
      if (to_text(known) == name) return known;
    wrong(fmt::format("there is no precision '{}'", name));
  }

  std::vector<MeasuredGradient> gradients(const json& object) const {
    std::vector<MeasuredGradient> gradients;
    std::set<std::string> names;
    double elements = 0;
    for (const json& entry : object.at("gradients")) {
      MeasuredGradient gradient{text(entry, "name"), count(entry, "elements", kMostElements),
                                number(entry, "ready", 0, 1)};
      if (!names.insert(gradient.name).second) wrong(fmt::format("{} is there twice", gradient.name));
      if (!gradients.empty() && gradient.ready < gradients.back().ready)
        wrong(fmt::format("{} is ready before the gradient in front of it", gradient.name));
      elements += static_cast<double>(gradient.elements);
      gradients.push_back(std::move(gradient));
    }
    if (gradients.empty()) wrong("it has no gradients");
    const std::int64_t parameters = count(object, "parameters", kMostElements);
    if (elements != static_cast<double>(parameters))
      wrong(fmt::format("its gradients have {} elements, and it says {}", elements, parameters));
    return gradients;
  }

  MeasuredStep step(const json& object) const {
    MeasuredStep step;
    step.file = file;
    step.created = text(object, "created");
    step.model = text(object, "model");
    step.own_model = object.at("own_model").get<bool>();
    step.batch = static_cast<int>(count(object, "batch", kMostBatch));
    step.precision = precision(object);
    step.device = text(object, "device_name");
    constexpr double kLeastMs = 1e-6;
    step.compute = {median(object, "forward_ms", kLeastMs), median(object, "backward_ms", kLeastMs),
                    median(object, "optimizer_ms", 0)};
    step.gradients = gradients(object);
    return step;
  }
};

[[noreturn]] void refuse_model(const MeasuredStep& step, const Model& model, const std::string& why) {
  usage_error("'{}' was measured for another {} than the one here: {}; run scripts/measure_step again",
              step.file, model.name, why);
}

/// The model's gradients by name.
std::map<std::string, const Tensor*> by_name(const Model& model) {
  std::map<std::string, const Tensor*> tensors;
  for (const Tensor& tensor : model.gradients) tensors[tensor.name] = &tensor;
  return tensors;
}

/// The part of the backward pass from the gradient before this one until this one is ready.
double part_of(const MeasuredStep& step, std::size_t i) {
  const double begin = i == 0 ? 0 : step.gradients[i - 1].ready;
  return (i + 1 == step.gradients.size() ? 1 : step.gradients[i].ready) - begin;
}

}  // namespace

MeasuredStep parse_step(const std::string& text, const std::string& file) {
  const Reader reader{file};
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object() || object.value("schema", json()) != kSchema)
    reader.wrong("it says nothing of the kind");
  try {
    if (object.at("version").get<double>() > kVersion) {
      usage_error(
          "'{}' is of version {}, but this polyring reads up to {}; use the polyring that came with it", file,
          object.at("version").dump(), kVersion);
    }
    return reader.step(object);
  } catch (const json::exception& error) {
    reader.wrong(error.what());
  }
}

MeasuredStep read_step(const std::filesystem::path& path) {
  return parse_step(read_file(path), path.string());
}

void check_model(const MeasuredStep& step, const Model& model) {
  if (step.model != model.name) {
    usage_error("'{}' was measured for {}, and --model is {}; {}, or give a file of {}", step.file,
                step.model, model.name, step.own_model ? "leave --model out" : "give --model " + step.model,
                model.name);
  }
  const auto tensors = by_name(model);
  for (const MeasuredGradient& gradient : step.gradients) {
    const auto found = tensors.find(gradient.name);
    if (found == tensors.end()) refuse_model(step, model, fmt::format("it has {}", gradient.name));
    const std::int64_t elements = found->second->elements();
    if (elements != gradient.elements) {
      refuse_model(step, model,
                   fmt::format("its {} has {} elements, not {}", gradient.name, gradient.elements, elements));
    }
  }
  if (step.gradients.size() != model.gradients.size()) {
    refuse_model(step, model,
                 fmt::format("it has {} gradients, not {}", step.gradients.size(), model.gradients.size()));
  }
}

Model with_measured_times(Model model, const MeasuredStep& step) {
  check_model(step, model);
  const auto tensors = by_name(model);
  const double flops = model.backward_flops_per_sample();
  std::vector<Tensor> ordered;
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    const Tensor& tensor = *tensors.at(step.gradients[i].name);
    ordered.push_back({tensor.name, tensor.shape, part_of(step, i) * flops});
  }
  model.gradients = std::move(ordered);
  return model;
}

Model model_of(const MeasuredStep& step) {
  Model model;
  model.name = step.model;
  model.summary = fmt::format("the user's, from '{}'", step.file);
  model.sample = {"samples", 0};
  const double backward = step.compute.backward.value / step.batch;
  model.forward_flops_per_sample = step.compute.forward.value / step.batch;
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    const MeasuredGradient& gradient = step.gradients[i];
    model.gradients.push_back({gradient.name, {gradient.elements}, part_of(step, i) * backward});
  }
  Block block;
  block.name = "all of it";
  block.forward_flops = model.forward_flops_per_sample;
  block.backward_flops = model.backward_flops_per_sample();
  block.parameters = model.total_elements();
  model.blocks = {block};
  return model;
}

std::string source_of(const MeasuredStep& step) {
  return fmt::format("measured with batch {} in {} precision on {} ({} of {})", step.batch,
                     to_text(step.precision), step.device, step.file, step.created.substr(0, 10));
}

}  // namespace polyring
