// Published training results of models that the catalogue does not have, or of several GPUs: what
// utilisation.hpp knows beside known_throughputs().
#pragma once

#include <vector>

#include "models/utilisation.hpp"

namespace polyring {

std::vector<TrainingResult> more_results();

}  // namespace polyring
