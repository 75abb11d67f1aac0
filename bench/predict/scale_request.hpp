// A scaling table that is wanted, and what its numbers rest on, in words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/predict/compute.hpp"
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

/// 4 to 256 GPUs where these fill hosts or, unless one host is the baseline, a part of one; otherwise whole
/// hosts, doubled.
std::vector<int> default_counts(int host_gpus, bool over_host);

/// The measured counts, and then twice as many again and again.
std::vector<int> counts_from(const std::vector<TrainRow>& measured);

/// The framework that a preset's published results were made with, by its name in frameworks(); ddp for
/// others.
std::string_view framework_of(std::string_view machine);

/// "gpu", "host" or an algorithm; empty: as the framework's published tables.
BaselineChoice baseline_of(const std::string& text, const Framework& framework);

/// Of an estimated computing time; nothing otherwise.
std::optional<CostRange> computing_range(const Compute& compute);

/// Everything that the numbers rest on, each with its source.
std::vector<Input> inputs_of(const ScaleRequest& request);

/// What is to be said below the table of these rows, at least one.
std::vector<std::string> notes_of(const ScaleRequest& request, const std::vector<ScaleRow>& rows);

/// What is to be said of the rows themselves: how their ranges come about, and why some are faster than their
/// baseline.
std::vector<std::string> notes_of_rows(const std::vector<ScaleRow>& rows);

/// What each row's largest allreduce waits for, and where every number that goes in was read.
std::string explanation(const ResultFile& result);

}  // namespace polyring
