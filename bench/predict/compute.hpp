// How long a GPU computes for one training step: as stated, as measured by scripts/measure_step, from a
// published throughput, or estimated from the model's operations and a range of what like models use of the
// GPU's peak.
#pragma once

#include <optional>
#include <string>

#include "base/units.hpp"
#include "bench/cli/command_line.hpp"
#include "models/activations.hpp"
#include "models/precision.hpp"
#include "models/step.hpp"

namespace polyring {

/// What a machine says of its GPUs.
struct MachineGpu {
  std::string model;       // the product; may be empty
  Bytes memory;            // of one; 0: unknown
  int gradient_bytes = 4;  // of an element
  Attention attention = Attention::fused;
};

struct Compute {
  StepCompute step;     // the middle, where it is estimated
  StepCompute fastest;  // of the range: the highest utilisation; `step` where it is not estimated
  StepCompute slowest;  // the lowest
  std::string source;   // in words, with the citation
  /// What an estimate rests on, one citation after another: for the inputs, too long for a caption.
  std::string citations;
  int batch = 0;  // samples per GPU and step that `step` is of
  Precision precision = Precision::single;
  bool estimated = false;
  /// For a caption: what was chosen without being asked for, and what is estimated or measured, as a sentence
  /// without its full stop. Empty where nothing is.
  std::string choice;
};

struct ComputeOptions {
  static constexpr const char* kUsualModel = "resnet50";

  std::optional<std::string> model;  // nothing: kUsualModel, or that of a measured step
  std::optional<int> batch;          // nothing: chosen, see resolve()
  std::optional<double> compute_ms;  // nothing: from what is known of `gpu`
  std::string gpu;
  std::string precision;    // single or mixed; empty: chosen
  std::string utilisation;  // of the peak, as in `40%`; empty: from published results
  std::string step;         // a file of scripts/measure_step; empty: none

  void add_to(Subcommand command);

  /// The model that is trained: the catalogue's. With a measured step its gradients are ready when
  /// they were measured to be; where that is of a model of the user's own, and no --model is given, it is
  /// that model. Throws a usage Error for unknown models, and as read_step() and check_model() do.
  Model trained() const;

  /// The first of these that can be had:
  /// - the measured step; throws as trained() does, and where it has another batch or precision,
  /// - the time that is stated,
  /// - the published throughput with that batch,
  /// - that with another batch, up to twice as large or small (estimated),
  /// - the model's FLOPs by the GPU's peak and a range of utilisations (estimated).
  ///
  /// Without --batch: of the batches with a published throughput that fit the memory, the one nearest to 32;
  /// where there is none, the largest power of two up to 256 samples and 32,768 tokens that fits, and 1 where
  /// none does. Without --precision: single for CNNs and on GPUs without tensor cores, else mixed.
  ///
  /// What does not fit the memory at all is resolved, too: strategies decide. `machine`: its product counts
  /// when no --gpu is given, its memory always. Throws a usage Error when that GPU is not known, with those
  /// that are; and for impossible values.
  Compute resolve(const Model& of_model, const MachineGpu& machine) const;

 private:
  Compute measured(const Model& of_model) const;
};

}  // namespace polyring
