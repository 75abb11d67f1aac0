// The file of scripts/measure_step: how long a training step computes, and when each gradient is ready. JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/precision.hpp"
#include "models/step.hpp"

namespace polyring {

struct MeasuredGradient {
  std::string name;
  std::int64_t elements = 0;
  double ready = 0;  // the part of the backward pass, 0 to 1, after which it was complete
};

/// One GPU's step, or a CPU's, without any communication. Times are medians.
struct MeasuredStep {
  std::string file;
  std::string created;  // ISO 8601, UTC
  std::string model;
  bool own_model = false;  // none of the catalogue
  int batch = 0;
  Precision precision = Precision::single;
  std::string device;  // the product
  StepCompute compute;
  std::vector<MeasuredGradient> gradients;  // in the order in which they became ready
};

/// Throws a usage Error that names `file` unless `text` is of this format and no newer version, and every
/// number makes sense.
MeasuredStep parse_step(const std::string& text, const std::string& file);

/// The same from a file. Throws as read_file() does, too.
MeasuredStep read_step(const std::filesystem::path& path);

/// Throws a usage Error unless the step was measured for this model: the same name, and the same gradients by
/// name and elements.
void check_model(const MeasuredStep& step, const Model& model);

/// The model with its gradients in the order in which they became ready, and with its backward FLOPs divided
/// among them as the backward pass's time was: buckets are then ready when they were measured to be. The last
/// gradient counts as ready when the backward pass ends. Throws as check_model() does.
Model with_measured_times(Model model, const MeasuredStep& step);

/// The user's own model, made from the measured step alone. It is one block, so no strategy can divide it.
/// Its activations count as nothing. Its FLOPs are the seconds of both passes per sample.
Model model_of(const MeasuredStep& step);

/// "measured with batch 32 in single precision on Tesla V100 (step.json of 2026-03-01)": a time's source.
std::string source_of(const MeasuredStep& step);

}  // namespace polyring
