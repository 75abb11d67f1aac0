// How long a GPU computes for one training step: as stated, or from a published throughput.
#pragma once

#include <optional>
#include <string>

#include "bench/cli/command_line.hpp"
#include "models/step.hpp"

namespace polyring {

struct Compute {
  StepCompute step;
  std::string source;  // in words, with the citation
};

struct ComputeOptions {
  std::string model = "resnet50";
  int batch = 32;
  std::optional<double> compute_ms;  // nothing: from the throughput of `gpu`
  std::string gpu;

  void add_to(Subcommand command);

  /// `machine_gpu`: the model of the machine's GPUs, for when no --gpu is given; may be empty. Throws a usage
  /// Error when no throughput is known for it, saying which are and that --compute-ms does without.
  Compute resolve(const Model& of_model, const std::string& machine_gpu) const;
};

}  // namespace polyring
