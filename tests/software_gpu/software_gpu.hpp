// What the software GPU offers beside CUDA's runtime API: to the fake NCCL, and to tests.
//
// All are functions of its libcudart.so, so a program that also runs on a GPU finds them with dlsym().
#pragma once

#include <cuda_runtime_api.h>

extern "C" {

/// Does run(context) in the stream, after all that the stream was given before, and destroy(context) when
/// nothing can run it any more. Captured like a kernel: then its graphs run it any number of times. `run` may
/// touch device memory only between polyring_software_gpu_allow() and forbid(). It may throw nothing, and may
/// wait for other ranks. A wait that must end with the device asks polyring_software_gpu_error().
cudaError_t polyring_software_gpu_enqueue(cudaStream_t stream, void (*run)(void* context),
                                          void (*destroy)(void* context), void* context);

/// From now on this thread may touch device memory of all devices, until as many calls of forbid().
void polyring_software_gpu_allow(void);
void polyring_software_gpu_forbid(void);

/// The device (as this process counts them) whose memory this is, or -1.
int polyring_software_gpu_device_of(const void* pointer);

/// The bytes of device memory from this address to the end of its allocation; 0 for other addresses.
size_t polyring_software_gpu_bytes_at(const void* pointer);

/// The device of a stream, and its error that all calls return from now on: cudaSuccess while it works.
int polyring_software_gpu_device_of_stream(cudaStream_t stream);
cudaError_t polyring_software_gpu_error(int device);

/// How device memory is protected: "protection keys" or "page protection".
const char* polyring_software_gpu_protection(void);

/// The line number `index` (from 0) of the plan that begins with `word` and is meant for this process,
/// without that word and "rank N"; null where there are not so many. For `nccl` and
/// `cublas` lines.
const char* polyring_software_gpu_plan_line(const char* word, int index);
}
