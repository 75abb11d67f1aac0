// Training runs whose scaling others published, beside the model: published_training.json, which is built
// into the program. They only check it: no input, range or default may rest on them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/predict/scaling.hpp"

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

/// The model of one point. Where it is not known what the gradients were sent as, from the lowest to the
/// highest of all, and the mean of their middles.
struct CheckedPoint {
  int gpus = 0;
  double published = 0;
  double low = 0;
  double middle = 0;
  double high = 0;
  std::string widest;

  bool inside() const { return low <= published && published <= high; }
};

/// All points but the baseline's own. The computing time is that of the published rate of one GPU, or of one
/// host's.
std::vector<CheckedPoint> check_training(const PublishedTraining& run);

/// How well the model foretold the runs with the most GPUs of each.
struct TrainingTally {
  int runs = 0;
  int inside = 0;
  double error = 0;         // of the middle, mean of the magnitudes: a part of the ideal efficiency
  double signed_error = 0;  // mean: above 0 where the model is too kind
};

/// A table of all points of these runs, and their tally below it.
struct TrainingCheck {
  std::string table;
  TrainingTally tally;
};

/// Of the runs that were held out, or of the others.
TrainingCheck check_all_training(bool held_out);

}  // namespace polyring
