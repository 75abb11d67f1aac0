#include "bench/predict/compute.hpp"

#include "base/error.hpp"
#include "bench/cli/options.hpp"
#include "models/throughput.hpp"

namespace polyring {
namespace {

constexpr double kMostComputeMs = 24 * 3600 * 1e3;

}  // namespace

void ComputeOptions::add_to(Subcommand command) {
  add_model_option(command, model, "What is trained").show_default();
  command.add_option("--batch", batch, "Samples per GPU and step").show_default().range(1, 1 << 20);
  command.add_option("--compute-ms", compute_ms, "Forward and backward of one step, in milliseconds");
  command.add_option("--gpu", gpu, "Take that time from this GPU's published throughput, such as P100")
      .type_name("NAME")
      .excludes({"--compute-ms"});
}

Compute ComputeOptions::resolve(const Model& of_model, const std::string& machine_gpu) const {
  if (compute_ms) {
    if (!(*compute_ms > 0 && *compute_ms <= kMostComputeMs)) {
      usage_error("--compute-ms {} is impossible; give a number above 0 up to {}, a day", *compute_ms,
                  kMostComputeMs);
    }
    return {compute_of(of_model, {*compute_ms * 1e-3}), "as stated by --compute-ms"};
  }
  const std::string& name = gpu.empty() ? machine_gpu : gpu;
  if (name.empty())
    usage_error("give the computing time of a step by --compute-ms, or a GPU by --gpu, such as P100");
  const auto throughput = find_throughput(name, of_model.name, batch);
  if (!throughput) {
    usage_error(
        "no published throughput of {} with batch {} on '{}' is known; use --compute-ms, or one of: {}",
        of_model.name, batch, name, throughput_choices());
  }
  return {compute_of(of_model, {batch / throughput->samples_per_second}),
          fmt::format("{} images/s of one {} at batch {} ({})", throughput->samples_per_second,
                      throughput->gpu, batch, throughput->source)};
}

}  // namespace polyring
