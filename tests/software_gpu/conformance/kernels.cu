// The kernels of the conformance suite, and functions that launch them.
#include "tests/software_gpu/conformance/kernels.hpp"
#include "tests/software_gpu/conformance/launches.hpp"

using namespace polyring::software_gpu;

extern "C" __global__ void polyring_conformance_add(AddArguments arguments) {
  add_body(arguments, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

extern "C" __global__ void polyring_conformance_wait(WaitArguments arguments) {
  while (*arguments.word == 0) {
  }
}

// Has no body for the host.
extern "C" __global__ void polyring_conformance_unknown(WaitArguments arguments) { (void)*arguments.word; }

void launch_add(const AddArguments& arguments, cudaStream_t stream) {
  polyring_conformance_add<<<4, 64, 0, stream>>>(arguments);
}

void launch_wait(const volatile unsigned* word, cudaStream_t stream) {
  polyring_conformance_wait<<<1, 1, 0, stream>>>({word});
}

void launch_unknown(cudaStream_t stream) { polyring_conformance_unknown<<<1, 1, 0, stream>>>({nullptr}); }

void launch_too_many_threads(cudaStream_t stream) {
  polyring_conformance_wait<<<1, 4096, 0, stream>>>({nullptr});
}

const void* add_kernel() { return reinterpret_cast<const void*>(&polyring_conformance_add); }
