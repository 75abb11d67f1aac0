// The kernels' addresses, as cudaLaunchKernel takes them.
#pragma once

namespace polyring {

/// In the order of POLYRING_REDUCTIONS() in kernel_list.hpp, and of POLYRING_OTHERS().
extern const void* const kReductionKernels[];
struct OtherKernels {
  const void* copy;
  const void* messages;
  const void* fill;
  const void* compare;
  const void* work;
};
extern const OtherKernels kOtherKernels;

}  // namespace polyring
