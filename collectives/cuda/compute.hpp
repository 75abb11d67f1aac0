// See GpuPlugin::make_compute().
#pragma once

#include <memory>

#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {

std::unique_ptr<GpuCompute> make_gpu_compute(Transport& transport, Seconds step);

}  // namespace polyring::cuda
