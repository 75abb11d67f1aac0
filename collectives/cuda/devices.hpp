// The GPUs that this process may use.
#pragma once

#include <string>
#include <vector>

#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {

/// "13.0", of the runtime that is loaded.
std::string runtime_version();

/// See GpuPlugin::gpus().
std::vector<GpuDevice> gpus();

/// "NVIDIA H100 80GB HBM3".
std::string name_of(int device);
int multiprocessors(int device);

/// See GpuPlugin::free_memory().
Bytes free_memory(int device);

}  // namespace polyring::cuda
