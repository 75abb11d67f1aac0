// The kernels for AVX-512 (F, BW, DQ and VL).
#include "collectives/runtime/kernels/reduce.hpp"

namespace polyring {

constinit const KernelTable kAvx512Kernels{reduce, copy};

}  // namespace polyring
