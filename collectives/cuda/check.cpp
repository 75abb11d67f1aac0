#include "collectives/cuda/check.hpp"

#include "base/error.hpp"

namespace polyring::cuda {

void check(cudaError_t result, std::string_view doing) {
  if (result == cudaSuccess) return;
  // Otherwise a later call that is right would report it.
  cudaGetLastError();
  int device = -1;
  const bool known = cudaGetDevice(&device) == cudaSuccess;
  throw Error(ExitCode::cuda,
              fmt::format("{}cannot {}: {} ({})", known ? fmt::format("GPU {} ", device) : "CUDA ", doing,
                          cudaGetErrorString(result), cudaGetErrorName(result)));
}

bool is_over(cudaError_t answer, std::string_view what) {
  if (answer == cudaErrorNotReady) {
    cudaGetLastError();  // no error, but CUDA keeps it as one
    return false;
  }
  check(answer, what);
  return true;
}

}  // namespace polyring::cuda
