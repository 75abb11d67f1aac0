#include "bench/predict/compute.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.hpp"
#include "base/names.hpp"
#include "bench/cli/options.hpp"
#include "bench/record/step_file.hpp"
#include "models/gpu_peaks.hpp"
#include "models/strategy_memory.hpp"
#include "models/throughput.hpp"
#include "models/utilisation.hpp"

namespace polyring {
namespace {

constexpr double kMostComputeMs = 24 * 3600 * 1e3;
constexpr int kUsualBatch = 32;
constexpr int kLargestBatch = 256;
constexpr std::int64_t kMostTokens = 32'768;
/// With twice the batch the published throughputs of one source are 5 % (VGG-16, V100, single) to 24 %
/// (ResNet-50, V100, mixed) higher, in the middle 11 %; see models/throughput.cpp.
constexpr double kMostForTwice = 1.25;
constexpr double kUsualForTwice = 1.11;

struct Chosen {
  int batch = 0;
  std::string why;  // empty: it was asked for
};

bool fits(const Model& model, Precision precision, int batch, const MachineGpu& gpu) {
  return fits(plain_memory(model, training_state(precision, gpu.gradient_bytes, gpu.attention, batch)),
              gpu.memory);
}

Chosen published_batch(const std::vector<Throughput>& published, const Model& model, const MachineGpu& gpu) {
  const Throughput* nearest = nullptr;
  for (const Throughput& known : published) {
    if (!fits(model, known.precision, known.batch, gpu)) continue;
    if (nearest == nullptr || std::abs(known.batch - kUsualBatch) < std::abs(nearest->batch - kUsualBatch)) {
      nearest = &known;
    }
  }
  if (nearest == nullptr) return {};
  return {nearest->batch, "a batch with a published throughput"};
}

Chosen estimated_batch(const Model& model, Precision precision, const MachineGpu& gpu) {
  int batch = 1;
  const std::int64_t tokens = std::max<std::int64_t>(1, model.sample.tokens);
  while (2 * batch <= kLargestBatch && 2 * batch * tokens <= kMostTokens &&
         fits(model, precision, 2 * batch, gpu)) {
    batch *= 2;
  }
  if (!fits(model, precision, batch, gpu))
    return {batch, "taken, since no batch fits a GPU that holds the whole model"};
  return {batch, gpu.memory.value == 0 ? "a usual batch" : "the largest usual batch that fits the memory"};
}

Compute exactly(const Model& model, Seconds time, std::string source) {
  const StepCompute step = compute_of(model, time);
  return {step, step, step, std::move(source), "", 0, Precision::single, false, ""};
}

Compute from_throughput(const Model& model, const Throughput& known, int batch) {
  return exactly(model, {batch / known.samples_per_second},
                 fmt::format("{} {}/s of one {} at batch {} ({})", known.samples_per_second,
                             model.sample.name, known.gpu, known.batch, known.source));
}

/// The throughput whose batch is the nearest, if it is up to twice as large or small.
const Throughput* near_batch(const std::vector<Throughput>& published, int batch) {
  const auto ratio = [&](const Throughput& known) {
    return std::abs(std::log2(static_cast<double>(known.batch) / batch));
  };
  const auto nearest =
      std::min_element(published.begin(), published.end(),
                       [&](const Throughput& a, const Throughput& b) { return ratio(a) < ratio(b); });
  return nearest == published.end() || ratio(*nearest) > 1 ? nullptr : &*nearest;
}

/// A larger batch is taken to be faster by nothing up to kMostForTwice for each doubling, a smaller one
/// slower.
Compute from_other_batch(const Model& model, const Throughput& known, int batch) {
  const double doublings = std::log2(static_cast<double>(batch) / known.batch);
  const double most = std::pow(kMostForTwice, doublings);
  const auto at = [&](double factor) {
    return compute_of(model, {batch / (known.samples_per_second * factor)});
  };
  Compute compute = from_throughput(model, known, batch);
  compute.source = fmt::format("estimated for batch {}, {:.0f} to {:.0f} % of its throughput: {}", batch,
                               100 * std::min(1.0, most), 100 * std::max(1.0, most), compute.source);
  compute.step = at(std::pow(kUsualForTwice, doublings));
  compute.fastest = at(std::max(1.0, most));
  compute.slowest = at(std::min(1.0, most));
  compute.estimated = true;
  return compute;
}

Compute from_peak(const Model& model, const GpuPeak& peak, Precision precision, int batch,
                  const UtilisationRange& range) {
  const double flops = batch * model.flops_per_sample();
  const double most = peak_of(peak, precision);
  const auto at = [&](double utilisation) { return compute_of(model, {flops / (most * utilisation)}); };
  const std::string parts = range.low == range.high
                                ? fmt::format("{:.1f} %", 100 * range.middle)
                                : fmt::format("{:.1f} to {:.1f} %, middle {:.1f} %,", 100 * range.low,
                                              100 * range.high, 100 * range.middle);
  return {at(range.middle),
          at(range.high),
          at(range.low),
          fmt::format("estimated: {} TFLOP a step, {} of the {} TFLOP/s of one {} ({}), {}",
                      significant(flops / 1e12), parts, significant(most / 1e12, 4), peak.gpu, peak.source,
                      range.basis),
          range.sources,
          batch,
          precision,
          true,
          ""};
}

/// `asked`: what the user says; may be empty.
UtilisationRange range_of(const std::string& asked, const Model& model, const GpuPeak& peak,
                          Precision precision) {
  if (asked.empty()) return utilisation_of(model, peak, precision);
  const double part = parse_utilisation(asked);
  return {part, part, part, "as stated by --utilisation", ""};
}

Precision chosen_precision(const std::string& asked, const Model& model, const GpuPeak* peak) {
  if (!asked.empty()) return parse_precision(asked);
  if (model.family == Family::cnn || peak == nullptr || !peak->matrix_units) return Precision::single;
  return Precision::mixed;
}

/// What the caption says of what was chosen and estimated.
std::string choice_of(const Compute& compute, const Chosen& chosen, bool precision_asked) {
  std::vector<std::string> parts;
  if (!chosen.why.empty()) parts.push_back(fmt::format("batch {} per GPU is {}", compute.batch, chosen.why));
  if (!precision_asked && compute.precision == Precision::mixed)
    parts.emplace_back("mixed precision is usual for this model");
  if (compute.estimated) {
    const std::string fastest = to_text(compute.fastest.total());
    const std::string slowest = to_text(compute.slowest.total());
    const std::string range = fastest == slowest ? "" : fmt::format(", from {} to {}", fastest, slowest);
    parts.push_back(
        fmt::format("the computing time is estimated: {} a step{}", to_text(compute.step.total()), range));
  }
  return parts.empty() ? "" : fmt::format("Chosen: {}", fmt::join(parts, "; "));
}

/// `asked`: by --gpu.
[[noreturn]] void refuse_gpu(const std::string& gpu, bool asked) {
  if (asked && gpu.find_first_not_of("0123456789.,") == std::string::npos) {
    usage_error(
        "--gpu '{}' is no product; name one, such as H100, or say how many GPUs there are by --ranks {}", gpu,
        gpu);
  }
  std::vector<std::string> known;
  for (const GpuPeak& peak : gpu_peaks()) known.push_back(peak.gpu);
  if (asked) {
    usage_error("--gpu: {}, or give the computing time by --compute-ms", unknown_name("GPU", gpu, known));
  }
  usage_error("no peak of '{}' is known; give the computing time by --compute-ms, or by --gpu one of: {}",
              gpu, gpu_peak_choices());
}

}  // namespace

void ComputeOptions::add_to(Subcommand command) {
  add_model_option(command, model, "What is trained").show_default(kUsualModel);
  command
      .add_option("--batch", batch,
                  "Samples per GPU and step; by default one with a published throughput, or one that fits")
      .range(1, 1 << 20);
  command.add_option("--compute-ms", compute_ms, "Forward and backward of one step, in milliseconds");
  command
      .add_option(
          "--gpu", gpu,
          "Take that time from what is known of this GPU, such as P100: published throughputs, or its "
          "peak")
      .type_name("NAME")
      .excludes({"--compute-ms"});
  command
      .add_option(
          "--precision", precision,
          "single, or mixed: float16 or bfloat16 with float32 masters; by default as is usual for the "
          "model")
      .type_name("NAME")
      .names({"precision", {"single", "mixed"}})
      .excludes({"--compute-ms"});
  command
      .add_option("--utilisation", utilisation,
                  "The part of the GPU's peak that a step uses, such as 40%, in place of what is published")
      .type_name("PART")
      .excludes({"--compute-ms"});
  command
      .add_option("--step", step,
                  "Take that time, and when each gradient is ready, from this file of scripts/measure_step")
      .type_name("FILE")
      .excludes({"--compute-ms", "--gpu", "--utilisation"});
}

Model ComputeOptions::trained() const {
  const std::string name = model.value_or(kUsualModel);
  if (step.empty()) return make_model(name);
  const MeasuredStep file = read_step(step);
  if (file.own_model && !model) return model_of(file);
  return with_measured_times(make_model(name), file);
}

Compute ComputeOptions::measured(const Model& of_model) const {
  const MeasuredStep file = read_step(step);
  check_model(file, of_model);
  if (batch && *batch != file.batch) {
    usage_error("'{}' was measured with batch {}, and --batch is {}; leave --batch out, or measure with {}",
                step, file.batch, *batch, *batch);
  }
  if (!precision.empty() && parse_precision(precision) != file.precision) {
    usage_error(
        "'{}' was measured in {} precision, and --precision is {}; leave --precision out, or measure in it",
        step, to_text(file.precision), precision);
  }
  const std::string source = source_of(file);
  return {file.compute,
          file.compute,
          file.compute,
          source,
          "",
          file.batch,
          file.precision,
          false,
          fmt::format("The computing time of a step and when its gradients are ready are {}", source)};
}

Compute ComputeOptions::resolve(const Model& of_model, const MachineGpu& machine) const {
  if (!step.empty()) return measured(of_model);
  if (compute_ms) {
    if (!(*compute_ms > 0 && *compute_ms <= kMostComputeMs)) {
      usage_error("--compute-ms {} is impossible; give a number above 0 up to {}, a day", *compute_ms,
                  kMostComputeMs);
    }
    Compute compute = exactly(of_model, {*compute_ms * 1e-3}, "as stated by --compute-ms");
    compute.batch = batch.value_or(kUsualBatch);
    compute.precision = chosen_precision(precision, of_model, find_gpu_peak(machine.model));
    return compute;
  }
  const std::string& name = gpu.empty() ? machine.model : gpu;
  if (name.empty())
    usage_error("give the computing time of a step by --compute-ms, or a GPU by --gpu, such as P100");
  const GpuPeak* peak = find_gpu_peak(name);
  if (peak == nullptr) refuse_gpu(name, !gpu.empty());
  const Precision in = chosen_precision(precision, of_model, peak);
  // The user's part of the peak counts, whatever was published.
  const std::vector<Throughput> published =
      utilisation.empty() ? throughputs_of(name, of_model.name, in) : std::vector<Throughput>{};
  Chosen chosen{batch.value_or(0), ""};
  if (!batch) chosen = published_batch(published, of_model, machine);
  if (chosen.batch == 0) chosen = estimated_batch(of_model, in, machine);

  Compute compute;
  const auto exact = std::find_if(published.begin(), published.end(),
                                  [&](const Throughput& known) { return known.batch == chosen.batch; });
  if (exact != published.end()) {
    compute = from_throughput(of_model, *exact, chosen.batch);
  } else if (const Throughput* near = near_batch(published, chosen.batch)) {
    compute = from_other_batch(of_model, *near, chosen.batch);
  } else {
    compute = from_peak(of_model, *peak, in, chosen.batch, range_of(utilisation, of_model, *peak, in));
  }
  compute.batch = chosen.batch;
  compute.precision = in;
  compute.choice = choice_of(compute, chosen, !precision.empty());
  return compute;
}

}  // namespace polyring
