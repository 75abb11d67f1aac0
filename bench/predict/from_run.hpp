// A scaling table that begins with what was measured.
#pragma once

#include <string>
#include <vector>

#include "bench/predict/scaling.hpp"

namespace polyring {

/// Training steps that were measured, to go on from.
struct MeasuredTraining {
  ScalingCase scaling;  // the hosts of the run with most ranks, and what all runs have in common
  std::vector<std::string> algorithms;  // those that have a plan, so that they can be modelled
  std::string compute_source;
};

/// From results of `polyring train`. Throws a usage Error for a file of another kind or without rows, for
/// modelled rows, for hosts that differ in their number of ranks, and for runs that are not of one model,
/// batch, computing time, bucket policy and overlap.
MeasuredTraining measured_training(const std::vector<std::string>& files);

/// "Measured: 4, 8 and 16 ranks (4x4.json); …".
std::string note_of(const MeasuredTraining& training, const std::vector<std::string>& files);

}  // namespace polyring
