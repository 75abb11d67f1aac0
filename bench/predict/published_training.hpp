// Training runs whose scaling others published, beside the model: published_training.json, which is built
// into the program. They only check it: no input, range or default may rest on them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/predict/scaling.hpp"
#include "reports/result.hpp"

namespace polyring {

struct TrainingPoint {
  int gpus = 0;
  double efficiency = 0;  // 1 is ideal
  bool rounded = false;   // to a percent, as published; otherwise computed from rates
  int accumulation = 1;   // steps whose gradients are summed before they are exchanged
};

struct PublishedTraining {
  std::string id;
  bool held_out = true;  // otherwise it was compared with the model before its goals were set
  std::string system;
  std::string framework;
  std::string model;  // a name of the catalogue
  int batch = 0;      // samples per GPU
  std::string source;
  bool over_host = false;                   // one host is 1; otherwise one GPU
  bool real_data = false;                   // and no synthetic ones
  std::optional<double> single_gpu_rate{};  // samples per second
  std::vector<TrainingPoint> points;  // those with several GPUs, the fewest first; the baseline's among them
  // What the model is told of the run.
  std::string machine;                 // TOML
  std::string costs;                   // a name of frameworks()
  std::string bucket;                  // empty: the framework's own
  std::vector<std::string> gradients;  // types that they may have had
};

/// Throws an internal Error that names the row and the fault.
std::vector<PublishedTraining> parse_published_training(std::string_view json);

const std::vector<PublishedTraining>& published_training();

/// The model of each point but the baseline's own, as a row of published_runs.hpp. The computing time is that
/// of the published rate of one GPU, or of one host's. Where it is not known what the gradients were sent as,
/// the range is from the lowest to the highest of all, the efficiency the mean of their middles, and the step
/// the first one's.
std::vector<ScaleRow> check_training(const PublishedTraining& run);

/// Those of all runs.
std::vector<ScaleRow> check_all_training();

/// A table of these rows for the runs that were held out and one for the others, with their tallies.
std::string training_text(std::span<const ScaleRow> rows);

/// Which efficiencies each run published, and where: inputs of the comparison, and not of the model.
std::vector<Input> training_sources();

}  // namespace polyring
