// CUDA's errors: their names, the last one of each thread, and how a call of the API ends.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <string_view>

namespace polyring::software_gpu {

/// Thrown inside a call of the API, which then returns the code.
struct Failure {
  cudaError_t code;
};

inline void require(bool holds, cudaError_t code) {
  if (!holds) throw Failure{code};
}

std::optional<cudaError_t> error_of_name(std::string_view name);

/// Keeps it as this thread's last error unless it is cudaSuccess; returns it.
cudaError_t remember(cudaError_t code);

/// What must be there before a call can do anything.
enum class Needs {
  nothing,
  devices,  // a driver, and a device
  working,  // also: the current device has no error that stays
};

/// Throws Failure where the call cannot be made now.
void check_may_call(Needs needs);

/// A call of the API: does `body`, which throws Failure{code} unless all goes well.
template <typename Body>
cudaError_t call(Needs needs, const Body& body) {
  try {
    check_may_call(needs);
    body();
    return cudaSuccess;
  } catch (const Failure& failure) {
    return remember(failure.code);
  }
}

}  // namespace polyring::software_gpu
