// How many samples per second one GPU trains on its own, from published measurements.
//
// There is no formula behind these: a combination that nobody published has no throughput here. What
// utilisation.hpp does is for those.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/precision.hpp"

namespace polyring {

struct Throughput {
  std::string gpu;    // "P100"
  std::string model;  // a name of the model catalogue
  int batch = 0;      // samples per GPU and step
  Precision precision = Precision::single;
  double samples_per_second = 0;
  std::string source;  // the citation; begins with "derived" when it was computed from cited figures
};

/// All that are known: those cited, then those derived. The one derivation: for a ResNet-101 on a GPU with
/// cited figures of ResNet-50 and -152 at the same batch, time per image is interpolated linearly in the
/// models' FLOPs (the three differ in how often one block is repeated, and nothing is extrapolated).
const std::vector<Throughput>& known_throughputs();

/// Nothing when the combination is not known. `gpu` may be a product name: it must name the known GPU
/// (names_gpu()), so "P100" and "Tesla P100-SXM2-16GB" are the same; a variant whose float32 peak differs by
/// more than 15 % is not.
std::optional<Throughput> find_throughput(std::string_view gpu, std::string_view model, int batch,
                                          Precision precision = Precision::single);

/// All of one model on one GPU, smallest batch first.
std::vector<Throughput> throughputs_of(std::string_view gpu, std::string_view model, Precision precision);

/// What find_throughput() knows, one combination per item, for help texts and messages:
/// "P100 resnet50 (batch 32, 64), …", with "mixed" after the batches of mixed precision.
std::string throughput_choices();

}  // namespace polyring
