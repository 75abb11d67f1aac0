// A scaling table that is wanted, and what its numbers rest on, in words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/predict/scaling.hpp"
#include "bench/record/calibration_file.hpp"

namespace polyring {

/// Without --gpus.
inline constexpr int kMostGpusByDefault = 256;

struct ScaleRequest {
  ScalingCase scaling;
  std::vector<std::string> algorithms;
  std::string compute_source;
  std::string compute_citations;  // as in a Compute
  std::optional<CalibrationRecord> calibration;
  std::string measured;              // what was, in a sentence; empty when nothing was
  std::vector<std::string> asked{};  // as in an Inventory
};

/// 4 to 256 GPUs where these fill hosts, or a part of one; otherwise whole hosts, doubled.
std::vector<int> default_counts(int host_gpus);

/// The framework that a preset's published results were made with, by its name in frameworks(); ddp for
/// others.
std::string_view framework_of(std::string_view machine);

/// Everything that the numbers rest on, each with its source.
std::vector<Input> inputs_of(const ScaleRequest& request);

/// What is to be said below a table of up to `gpus` GPUs.
std::vector<std::string> notes_of(const ScaleRequest& request, int gpus);

/// How the ranges of the rows' efficiency come about; empty where they have none.
std::string note_of_ranges(const std::vector<ScaleRow>& rows);

}  // namespace polyring
