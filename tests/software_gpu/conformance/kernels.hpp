// The kernels of the conformance suite: their arguments, and one body each, for devices and for the host.
#pragma once

#include <string_view>

#ifdef __CUDACC__
#define POLYRING_CONFORMANCE_BODY __host__ __device__ inline
#else
#define POLYRING_CONFORMANCE_BODY inline
#endif

namespace polyring {

struct HostKernel;

namespace software_gpu {

/// Each element of `to` becomes that of `from` plus `add`.
struct AddArguments {
  unsigned* to;
  const unsigned* from;
  unsigned add;
  unsigned count;
};

POLYRING_CONFORMANCE_BODY void add_body(const AddArguments& arguments, unsigned index, unsigned step) {
  for (unsigned at = index; at < arguments.count; at += step)
    arguments.to[at] = arguments.from[at] + arguments.add;
}

/// Waits until the word, in pinned memory of the host, is not 0.
struct WaitArguments {
  const volatile unsigned* word;
};

/// For the host; null where there is none of that name.
const HostKernel* conformance_kernel(std::string_view name);

}  // namespace software_gpu
}  // namespace polyring
