// What CUDA's calls return, as errors.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace polyring::cuda {

/// Throws Error(ExitCode::cuda) that names the GPU, what was being done, and CUDA's words. `doing`: "copy
/// from the GPU".
void check(cudaError_t result, std::string_view doing);

/// The same of a query: false where CUDA answers that what was asked for is not ready yet.
bool is_over(cudaError_t answer, std::string_view what);

}  // namespace polyring::cuda
