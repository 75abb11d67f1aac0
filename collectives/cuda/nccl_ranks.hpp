// What the ranks of a future NCCL communicator tell each other first, so that what NCCL would not survive, or
// would say in its log alone, is one sentence.
#pragma once

#include <nccl.h>

#include "collectives/cuda/nccl.hpp"
#include "collectives/runtime/bootstrap.hpp"

namespace polyring {

/// Collective: rank 0's new id, on all ranks. Throws the same AgreedError on all ranks, as NcclCommunicator's
/// constructor says.
ncclUniqueId agree_on_nccl(const NcclLibrary& library, const Bootstrap& bootstrap, const NcclDevice& device);

}  // namespace polyring
