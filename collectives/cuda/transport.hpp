// The transport between GPUs in the order of the host: each operation is enqueued once the host knows that
// what it needs is there. It needs nothing but copies and kernels, so it works wherever CUDA does: several
// ranks may have one GPU, be threads or processes, and reach each other or not.
//
// Ranks that reach each other's GPU memory tell each other where something is to be read or written, and
// whoever reads or writes tells when that is over; these short messages go over a transport on host memory.
// All else goes through pinned host memory and that transport (staging.hpp).
#pragma once

#include <memory>

#include "collectives/cuda/gpu.hpp"

namespace polyring::cuda {

/// See GpuPlugin::make_transport().
GpuTransport make_gpu_transport(std::unique_ptr<Transport> host, const Bootstrap& bootstrap,
                                const RankHosts& hosts, int device, const WaitRules& rules);

}  // namespace polyring::cuda
