// Input pipeline: whether samples arrive as fast as a training step uses them up.
//
// Samples of the next step are read while this one runs, so a step waits for data only where reading takes
// longer than the step itself. With s samples of b bytes per step, on h hosts:
//
//   file system   s·b / R(file system)      all hosts share it
//   NVMe          (s/h)·b / R(NVMe)         each host has its own
//   step          max(step without waiting, file system, NVMe)
//
// Decoding and augmentation on the host are left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "models/step.hpp"

namespace polyring {

/// What one sample of a data set takes up in storage.
struct SampleSize {
  Bytes bytes;
  std::string source;  // the citation
};

/// Of the data set that the model of the catalogue is trained on; nothing where none is cited.
std::optional<SampleSize> sample_size_of_model(std::string_view model);

/// Reads a size (`110KB`), which has this source, or the name of a data set. Throws a usage Error for
/// anything else, and for 0.
SampleSize parse_sample_size(std::string_view text, const std::string& source = "as stated");

/// "climate, imagenet-1k": for help texts and messages.
std::string data_set_names();

struct InputPipeline {
  SampleSize sample;
  Bandwidth filesystem;  // of all hosts together; unknown: any
  Bandwidth nvme;        // of each host; unknown: any
};

/// What a step waits for.
enum class Limit { compute, network, filesystem, nvme };

std::string_view to_text(Limit limit);  // "compute", "network", "data (file system)", "data (NVMe)"

/// Whichever of the two streams of the step works longer.
Limit limit_of(const Step& step);

struct FedStep {
  Seconds time;
  Limit limit = Limit::compute;
  Bandwidth needed;  // by all hosts, for the step not to wait
};

/// A step of `samples` samples, spread evenly over `hosts`, that takes `step`, above 0, and is limited by
/// `limit` as long as data are there.
FedStep feed(const InputPipeline& input, Seconds step, Limit limit, double samples, int hosts);

}  // namespace polyring
