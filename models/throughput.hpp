// How many samples per second one GPU trains on its own, from published measurements.
//
// There is no formula behind these: a combination that nobody published has no throughput here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyring {

/// Arithmetic of the training run: `single` is float32 (on A100: TF32), `mixed` is float16 with float32
/// masters.
enum class Precision { single, mixed };

std::string_view to_text(Precision precision);  // "single", "mixed"

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

/// Nothing when the combination is not known. `gpu` may be a product name: the known GPU must be one of its
/// words, in any case, so "P100" and "Tesla P100-SXM2-16GB" are the same.
std::optional<Throughput> find_throughput(std::string_view gpu, std::string_view model, int batch,
                                          Precision precision = Precision::single);

/// What find_throughput() knows, one combination per item, for help texts and messages:
/// "P100 resnet50 (batch 32, 64), …", with "mixed" after the batches of mixed precision.
std::string throughput_choices();

}  // namespace polyring
