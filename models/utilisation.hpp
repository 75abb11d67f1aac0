// How much of a GPU's peak a training step uses: ranges from published training results of like models, for
// combinations of model and GPU whose throughput nobody has published.
//
//   time of a step = batch · FLOPs of forward and backward / (peak · utilisation)
//
// A published result gives one utilisation: model FLOPs, without what is computed again, over the GPU's peak
// (gpu_peaks.hpp). The range of a model on a GPU comes from the results of its family in the same precision,
// of the GPU's generation or, where these are fewer than three or all of one source, of the nearest
// generations, too:
//
//   low = least / widening,  middle = median of the nearest generation,  high = largest · widening
//
// Results of GeForce count for GeForce only, if there are any others (GpuPeak::halved).
// Where a source has the model and another one on one GPU, the other's results are taken times the ratio of
// the two. The widening is 1.1, times 1.1 for each year between the generations, 1.25 where nothing says how
// the model compares with those of the results, and 1.5 where its family has none in this precision and a
// related one stands for it. These four numbers are our choice; tests/models/utilisation_test.cpp shows how
// many results lie inside the range that the others give.
//
// Most results are of one GPU. Those of large language models are of 8 and more, so that their utilisation
// contains what communication costs there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/gpu_peaks.hpp"
#include "models/model.hpp"
#include "models/precision.hpp"

namespace polyring {

struct TrainingResult {
  Family family = Family::cnn;
  std::string model;  // a name of the catalogue, or of another model
  std::string gpu;    // a name of gpu_peaks()
  Precision precision = Precision::single;
  double utilisation = 0;  // a part of the peak
  std::string source;      // the citation
};

/// All that are known: known_throughputs() as parts of the peak, and results of models that the catalogue
/// does not have.
const std::vector<TrainingResult>& training_results();

/// Parts of the peak.
struct UtilisationRange {
  double low = 0;
  double middle = 0;
  double high = 0;
  std::string basis;    // what it rests on, in words: "11 published results of …"
  std::string sources;  // their citations; empty where none are needed
};

/// From `results`, which are training_results() unless a test leaves some out; not empty.
UtilisationRange utilisation_of(const Model& model, const GpuPeak& gpu, Precision precision,
                                const std::vector<TrainingResult>& results = training_results());

/// Reads `40%` or `0.4`, above 0 and up to 100 %. Throws a usage Error for anything else.
double parse_utilisation(std::string_view text);

}  // namespace polyring
