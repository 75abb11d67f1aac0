// Calls that are enqueued on GPUs: NCCL's, and our own where they can be.
#pragma once

#include <memory>
#include <string>

#include "bench/contenders/collective_call.hpp"
#include "collectives/cuda/gpu.hpp"

namespace polyring {

/// `algorithm` and `implementation` are what CollectiveCall tells.
std::unique_ptr<CollectiveCall> make_enqueued_call(std::string algorithm, std::string implementation,
                                                   std::unique_ptr<GpuCollective> collective);

}  // namespace polyring
