// How fast GPUs copy: to and from pinned host memory, to other GPUs, and inside their own memory.
#pragma once

#include <memory>

#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {

/// See GpuPlugin::make_copies().
std::unique_ptr<GpuCopies> make_copies(const GpuCopyWork& work);

/// Lets kernels and copies of `device` access the memory of `other`, both of this process. False: they
/// cannot.
bool enable_access(int device, int other);

}  // namespace polyring::cuda
