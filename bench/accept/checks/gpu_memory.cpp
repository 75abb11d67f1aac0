// gpu.memory: copies inside the memory of each GPU.
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/gpu_copies.hpp"

namespace polyring {

const Check kGpuMemory =
    check_of_copies<copies_inside_gpus>("GPUs whose memory is slower than that of others");

}  // namespace polyring
