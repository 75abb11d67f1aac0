// What CUDA's calls return, as errors.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace polyring::cuda {

/// Throws Error(ExitCode::cuda) that names the GPU, what was being done, and CUDA's words. `doing`: "copy
/// from the GPU".
void check(cudaError_t result, std::string_view doing);

}  // namespace polyring::cuda
