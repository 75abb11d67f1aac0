// How fast GPUs multiply matrices by cuBLAS, and whether the results are right.
#pragma once

#include <span>

#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {

/// See GpuPlugin::multiply().
GpuProducts multiply(std::span<const int> gpus, const GpuProductWork& work);

}  // namespace polyring::cuda
