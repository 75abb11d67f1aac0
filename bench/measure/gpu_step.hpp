// One training step on a GPU: kernels compute, allreduces go on beside them, and events take the times.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/measure/training.hpp"
#include "bench/session/watchdog.hpp"
#include "collectives/cuda/gpu.hpp"
#include "reports/result.hpp"

namespace polyring {

/// Times are the GPU's. A call that is enqueued waits on the GPU for its bucket's gradients; where calls are
/// made by the host, it waits for them. With overlap the computation goes on all the while. Collective.
Step step_on_gpu(Trainer& trainer, const TrainingWork& work, const std::vector<Seconds>& ready,
                 Watchdog& watchdog);

/// The same without computation: how long the allreduces take alone. Collective.
Seconds communication_on_gpu(Trainer& trainer, const TrainingWork& work, Watchdog& watchdog);

/// What this rank's GPU does in one such step, as nvprof lists it: by time, the longest first; its idle time
/// last. Collective.
std::vector<GpuShare> profile_of_step(Trainer& trainer, const TrainingWork& work,
                                      const std::vector<Seconds>& ready, Watchdog& watchdog);

/// Of these activities and the step of the same begin, whose computation was so many launches. Enqueued calls
/// are kernels from their begin to their end; `enqueued`: the step's are.
std::vector<GpuShare> shares_of(const Step& step, std::uint64_t launches, bool enqueued,
                                const std::vector<GpuActivity>& activities);

/// Whether an activity of those is a copy from or to the host.
bool is_host_copy(std::string_view activity);

}  // namespace polyring
