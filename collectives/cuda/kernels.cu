// The kernels for the GPU, and their addresses.
#include "collectives/cuda/device_kernels.hpp"
#include "collectives/cuda/grid.hpp"
#include "collectives/cuda/kernel_list.hpp"

namespace polyring {
namespace {

/// Between two looks at a flag.
struct DevicePause {
  __device__ void operator()() const {
#if __CUDA_ARCH__ >= 700
    __nanosleep(20);
#endif
  }
};

template <typename Body, int kPhase = 0>
__device__ void run_phases(const typename Body::Arguments& arguments, const ThreadPlace& place,
                           typename Body::State& state) {
  Body::template run<kPhase>(arguments, place, state, DevicePause{});
  if constexpr (kPhase + 1 < Body::kPhases) {
    __syncthreads();
    run_phases<Body, kPhase + 1>(arguments, place, state);
  }
}

template <typename Body>
__device__ void run_body(const typename Body::Arguments& arguments) {
  __shared__ typename Body::State state;
  run_phases<Body>(arguments, {blockIdx.x, gridDim.x, threadIdx.x, blockDim.x}, state);
}

}  // namespace

// The arguments are read where the launch puts them. Two blocks fit a multiprocessor: 64 registers a thread.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
#define POLYRING_PARAMETER const __grid_constant__
#else
#define POLYRING_PARAMETER const
#endif

#define POLYRING_KERNEL(name, ...)                                \
  extern "C" __global__ void __launch_bounds__(kBlockThreads, 2)  \
      name(POLYRING_PARAMETER __VA_ARGS__::Arguments arguments) { \
    run_body<__VA_ARGS__>(arguments);                             \
  }
#define POLYRING_REDUCTION_KERNEL(op, from, to) \
  POLYRING_KERNEL(POLYRING_REDUCTION_NAME(op, from, to), POLYRING_REDUCTION_BODY(op, from, to))
#define POLYRING_OTHER_KERNEL(name, ...) POLYRING_KERNEL(POLYRING_OTHER_NAME(name), __VA_ARGS__)

POLYRING_REDUCTIONS(POLYRING_REDUCTION_KERNEL)
POLYRING_OTHERS(POLYRING_OTHER_KERNEL)

#define POLYRING_ADDRESS(name) reinterpret_cast<const void*>(&name),
#define POLYRING_REDUCTION_ADDRESS(op, from, to) POLYRING_ADDRESS(POLYRING_REDUCTION_NAME(op, from, to))
#define POLYRING_OTHER_ADDRESS(name, ...) POLYRING_ADDRESS(POLYRING_OTHER_NAME(name))

const void* const kReductionKernels[] = {POLYRING_REDUCTIONS(POLYRING_REDUCTION_ADDRESS)};
const OtherKernels kOtherKernels = {POLYRING_OTHERS(POLYRING_OTHER_ADDRESS)};

}  // namespace polyring
