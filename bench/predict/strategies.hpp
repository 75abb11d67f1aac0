// Steps of strategies that split a replica over GPUs, or let replicas alone: each made of schedules and
// messages, simulated like the rest.
#pragma once

#include <string>

#include "bench/predict/scaling.hpp"

namespace polyring {

/// A step of all GPUs of the cluster under scaling.strategy, whose factors multiply to their number. Throws
/// a usage Error for what is not modelled together, and for a model that cannot be split so.
ModelledStep model_strategy(const ScalingCase& scaling, const Strategy& strategy,
                            const std::string& algorithm, const PlanConstraints& constraints,
                            const Cluster& cluster);

/// What is to be said below the table.
std::string note_of(const ScalingCase& scaling, const Strategy& strategy);

}  // namespace polyring
