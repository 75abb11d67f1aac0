// Launches of the conformance suite's kernels. None waits; cudaGetLastError() says how it went.
#pragma once

#include <cuda_runtime_api.h>

#include "tests/software_gpu/conformance/kernels.hpp"

void launch_add(const polyring::software_gpu::AddArguments& arguments, cudaStream_t stream);
/// Until the word, in pinned memory, is not 0.
void launch_wait(const volatile unsigned* word, cudaStream_t stream);
/// A kernel that the software GPU has no body of.
void launch_unknown(cudaStream_t stream);
void launch_too_many_threads(cudaStream_t stream);
const void* add_kernel();
