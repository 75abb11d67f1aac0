// NCCL's own collectives, as the program asks for them.
#pragma once

#include <memory>

#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {

/// See GpuPlugin::make_nccl().
std::unique_ptr<NcclCollectives> make_nccl_collectives(const Bootstrap& bootstrap, const GpuDevice& gpu,
                                                       const WaitRules& rules);

}  // namespace polyring::cuda
