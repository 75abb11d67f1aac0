// The kernels for every processor.
#include "collectives/runtime/kernels/reduce.hpp"

namespace polyring {

constinit const KernelTable kPortableKernels{reduce, copy};

}  // namespace polyring
