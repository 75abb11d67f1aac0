// From a training step to the timeline that reports draw.
#pragma once

#include <vector>

#include "bench/measure/training.hpp"
#include "models/step.hpp"
#include "reports/result.hpp"

namespace polyring {

/// The step whose total is the median, or the one just below it. There must be one.
const Step& median_step(const TrainingSteps& measured);

std::vector<TimelineSpan> timeline_of(const Step& step);

}  // namespace polyring
