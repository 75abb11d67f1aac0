#include "models/utilisation.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "base/part.hpp"
#include "models/more_results.hpp"
#include "models/throughput.hpp"

namespace polyring {

namespace {

constexpr std::size_t kEnough = 3;
constexpr double kAlways = 1.1;
constexpr double kEachYear = 1.1;
constexpr double kOtherModel = 1.25;
constexpr double kOtherFamily = 1.5;
/// No model is taken to exceed it, unless a published result of its own does.
constexpr double kMost = 0.8;
/// Between NVIDIA's generations and AMD's.
constexpr int kOtherVendorYears = 2;

int year_of(GpuGeneration generation) {
  switch (generation) {
    case GpuGeneration::pascal:
      return 2016;
    case GpuGeneration::volta:
      return 2017;
    case GpuGeneration::turing:
      return 2018;
    case GpuGeneration::ampere:
      return 2020;
    case GpuGeneration::cdna:
      return 2020;
    case GpuGeneration::cdna2:
      return 2021;
    case GpuGeneration::ada:
      return 2022;
    case GpuGeneration::hopper:
      return 2022;
    case GpuGeneration::cdna3:
      return 2023;
    case GpuGeneration::blackwell:
      return 2024;
    case GpuGeneration::cdna4:
      return 2025;
  }
  return 0;
}

bool is_amd(GpuGeneration generation) {
  return generation == GpuGeneration::cdna || generation == GpuGeneration::cdna2 ||
         generation == GpuGeneration::cdna3 || generation == GpuGeneration::cdna4;
}

/// In years; 0 within a generation only.
int distance(GpuGeneration a, GpuGeneration b) {
  if (a == b) return 0;
  const int years = std::abs(year_of(a) - year_of(b));
  return std::max(1, years) + (is_amd(a) == is_amd(b) ? 0 : kOtherVendorYears);
}

/// Families to look at, the model's own first.
std::vector<Family> like(Family family) {
  switch (family) {
    case Family::cnn:
      return {Family::cnn, Family::diffusion};
    case Family::encoder:
      return {Family::encoder, Family::decoder};
    case Family::decoder:
      return {Family::decoder, Family::encoder};
    case Family::mixture:
      return {Family::mixture, Family::decoder, Family::encoder};
    case Family::vision_transformer:
      return {Family::vision_transformer, Family::encoder};
    case Family::diffusion:
      return {Family::diffusion, Family::cnn};
  }
  return {family};
}

/// Winograd's convolutions multiply less than is counted, so that VGG-16 exceeds the peak in float32. That
/// says nothing of other models.
bool holds_for(const TrainingResult& result, const Model& model) {
  return result.utilisation <= 1 || result.model == model.name;
}

std::vector<TrainingResult> of_family(const std::vector<TrainingResult>& results, Family family,
                                      const Model& model, Precision precision) {
  std::vector<TrainingResult> found;
  for (const TrainingResult& result : results) {
    if (result.family == family && result.precision == precision && holds_for(result, model))
      found.push_back(result);
  }
  return found;
}

/// Those of GPUs that halve products like this one, or do not like it; all, where there are none.
std::vector<TrainingResult> comparable(const std::vector<TrainingResult>& results, const GpuPeak& gpu) {
  std::vector<TrainingResult> found;
  std::copy_if(results.begin(), results.end(), std::back_inserter(found),
               [&](const TrainingResult& result) { return find_gpu_peak(result.gpu)->halved == gpu.halved; });
  return found.empty() ? results : found;
}

struct Evidence {
  std::vector<TrainingResult> results;
  int nearest = 0;  // years between the GPU's generation and that of the nearest of them
  int years = 0;    // and of the farthest
};

bool is_enough(const std::vector<TrainingResult>& results) {
  std::set<std::string> sources;
  for (const TrainingResult& result : results) sources.insert(result.source);
  return results.size() >= kEnough && sources.size() > 1;
}

/// Those of the nearest generations, as few of these as are enough.
Evidence nearest(const std::vector<TrainingResult>& results, GpuGeneration generation) {
  const auto years_of = [&](const TrainingResult& result) {
    return distance(find_gpu_peak(result.gpu)->generation, generation);
  };
  std::set<int> distances;
  for (const TrainingResult& result : results) distances.insert(years_of(result));
  Evidence evidence;
  if (!distances.empty()) evidence.nearest = *distances.begin();
  for (const int years : distances) {
    for (const TrainingResult& result : results)
      if (years_of(result) == years) evidence.results.push_back(result);
    evidence.years = years;
    if (is_enough(evidence.results)) break;
  }
  return evidence;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// What one result says of a model: itself, or times the ratio of the two models' utilisations.
struct Part {
  double low = 0;
  double middle = 0;
  double high = 0;
  bool of_model = false;
};

/// Of the model's utilisation over that of `other`, wherever one source has both on one GPU.
std::vector<double> ratios(const std::vector<TrainingResult>& results, const std::string& model,
                           const std::string& other, Precision precision) {
  std::vector<double> found;
  for (const TrainingResult& a : results) {
    if (a.model != model || a.precision != precision) continue;
    for (const TrainingResult& b : results) {
      if (b.model == other && b.precision == precision && b.source == a.source && b.gpu == a.gpu)
        found.push_back(a.utilisation / b.utilisation);
    }
  }
  return found;
}

Part part_of(const TrainingResult& result, const Model& model, const std::vector<TrainingResult>& results) {
  const double value = result.utilisation;
  if (result.model == model.name) return {value, value, value, true};
  const std::vector<double> factors = ratios(results, model.name, result.model, result.precision);
  if (factors.empty()) return {value, value, value, false};
  const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
  return {value * *least, value * median(factors), value * *most, true};
}

std::string basis_of(const Evidence& evidence, Family family, Precision precision) {
  std::set<std::string> gpus;
  for (const TrainingResult& result : evidence.results) gpus.insert(result.gpu);
  return fmt::format("{} published result{} of the family {}, {} precision, on {}", evidence.results.size(),
                     evidence.results.size() == 1 ? "" : "s", to_text(family), to_text(precision),
                     fmt::join(gpus, ", "));
}

std::string sources_of(const Evidence& evidence) {
  std::set<std::string> sources;
  for (const TrainingResult& result : evidence.results) sources.insert(result.source);
  return fmt::format("{}", fmt::join(sources, "; "));
}

std::vector<TrainingResult> all_results() {
  std::vector<TrainingResult> all = more_results();
  for (const Throughput& known : known_throughputs()) {
    if (known.source.starts_with("derived")) continue;
    const Model model = make_model(known.model);
    const double peak = peak_of(*find_gpu_peak(known.gpu), known.precision);
    all.push_back({model.family, known.model, known.gpu, known.precision,
                   known.samples_per_second * model.flops_per_sample() / peak, known.source});
  }
  return all;
}

}  // namespace

const std::vector<TrainingResult>& training_results() {
  static const std::vector<TrainingResult> all = all_results();
  return all;
}

UtilisationRange utilisation_of(const Model& model, const GpuPeak& gpu, Precision precision,
                                const std::vector<TrainingResult>& results) {
  double widening = kAlways;
  for (const Family family : like(model.family)) {
    const Evidence evidence =
        nearest(comparable(of_family(results, family, model, precision), gpu), gpu.generation);
    if (evidence.results.empty()) {
      widening *= kOtherFamily;
      continue;
    }
    widening *= std::pow(kEachYear, evidence.years);
    std::vector<double> middles;
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    double limit = kMost;
    bool of_model = false;
    for (const TrainingResult& result : evidence.results) {
      const Part part = part_of(result, model, results);
      if (distance(find_gpu_peak(result.gpu)->generation, gpu.generation) == evidence.nearest)
        middles.push_back(part.middle);
      least = std::min(least, part.low);
      most = std::max(most, part.high);
      of_model = of_model || part.of_model;
    }
    for (const TrainingResult& result : results)
      if (result.model == model.name && result.precision == precision)
        limit = std::max(limit, result.utilisation);
    if (!of_model) widening *= kOtherModel;
    const double high = std::min(limit, most * widening);
    return {least / widening, std::min(high, median(std::move(middles))), high,
            basis_of(evidence, family, precision), sources_of(evidence)};
  }
  std::abort();  // each family has results in each precision, or a related one has
}

double parse_utilisation(std::string_view text) {
  const std::optional<double> part = read_part(text);
  if (!part || *part == 0)
    usage_error(
        "utilisation '{}' is not a part of the GPU's peak, above 0 and up to 100 %; write it as 40% or 0.4",
        text);
  return *part;
}

}  // namespace polyring
