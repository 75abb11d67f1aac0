// gpu.copies: copies between each GPU and its host, and between each two GPUs, one way and both ways, alone
// and all at once.
#include "bench/accept/gpu_copies.hpp"

#include "bench/accept/checks/checks.hpp"

namespace polyring {

const Check kGpuCopies = check_of_copies<copies_to_and_between_gpus>(
    "copies to, from and between GPUs that are slower than their links or others, or wrong");

}  // namespace polyring
