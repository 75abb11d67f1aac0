// See GpuPlugin::make_collective().
#pragma once

#include <memory>
#include <string>

#include "collectives/cuda/gpu.hpp"
#include "collectives/cuda/stream_runner.hpp"

namespace polyring::cuda {

/// This rank's part of a plan.
StreamSchedule stream_schedule(const RankGpu& gpu, const Plan& plan, const CollectiveOf& what);

std::unique_ptr<GpuCollective> make_gpu_collective(Transport& transport, const Plan& plan,
                                                   const CollectiveOf& what, std::string& why_not);

}  // namespace polyring::cuda
