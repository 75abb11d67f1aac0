// The kernels for every processor.
#include "collectives/kernels/reduce.hpp"

namespace polyring {

constinit const KernelTable kPortableKernels{reduce, copy};

}  // namespace polyring
