// The kernels for AVX2 and F16C.
#include "collectives/runtime/kernels/reduce.hpp"

namespace polyring {

constinit const KernelTable kAvx2Kernels{reduce, copy};

}  // namespace polyring
