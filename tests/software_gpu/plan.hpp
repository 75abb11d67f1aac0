// The machine that the software GPU pretends to be, and the faults it will have: read from a text file.
//
// POLYRING_SOFTWARE_GPU names the file. Without it there are 8 devices, all peers, and no faults. One thing
// a line; `#` begins a comment; what is said later replaces what was said before.
//
//   devices 8                            first, where it is given
//   device * memory 80GiB                of all devices (*) or one: name, memory, capability,
//   multiprocessors, device 1 pci 0000:1b:00.0            pci, mig (as in `mig 1g.10gb`: a slice, which is
//   nobody's peer) peers none                           or `peers all`, `peers 0 1`, `no-peers 0 1`
//   driver 12.4                          or `driver none`
//   oldest-capability 7.5                kernels have no code for GPUs before this one
//   delays seed 7 up-to 300us one-in 2   a stream waits before one in 2 of its operations
//   lost device 1 at operation 20        or `… as cudaErrorECCUncorrectable`
//   hung stream on device 0 at operation 5
//   failed allocation 3 on device 0      or `failed allocation above 64MiB on device 0`
//   killed at operation 12 on device 0   the process, by SIGKILL
//   nccl …                               is the fake NCCL's, and `cublas …` the software cuBLAS's
//
// `rank 2` before a line restricts it to the process with this rank (of Open MPI, PMIx, PMI or Slurm).
// Devices count from 0 in the machine, whatever CUDA_VISIBLE_DEVICES says. Operations are kernels, copies,
// memsets and host functions, as each process gives them to the device, from 1. Allocations count likewise.
// POLYRING_SOFTWARE_GPU_SEED replaces the seed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace polyring::software_gpu {

struct DevicePlan {
  std::string name = "software GPU";
  std::string mig;  // the slice's profile
  std::size_t memory = std::size_t{80} << 30;
  int capability_major = 9, capability_minor = 0;
  int multiprocessors = 132;
  int pci_domain = 0, pci_bus = 0, pci_device = 0;
  std::vector<bool> peers;  // by device
};

struct Fault {
  enum class Kind { lost, hung, killed, failed_allocation };
  Kind kind;
  int device = -1;        // -1: any
  std::uint64_t at = 0;   // the operation or allocation; 0: see `above`
  std::size_t above = 0;  // fails larger allocations
  cudaError_t as = cudaErrorLaunchFailure;
};

struct Delays {
  std::uint64_t seed = 1;
  std::int64_t up_to_ns = 0;
  unsigned one_in = 2;
};

struct Plan {
  std::vector<DevicePlan> devices;
  std::vector<Fault> faults;  // this process's
  Delays delays;
  int driver_version = CUDART_VERSION;  // as CUDA counts; 0: none
  int oldest_capability = CUDART_VERSION >= 13000 ? 75 : 50;
  std::vector<std::string> others;  // lines for others
  int rank = -1;                    // of this process; -1: unknown
};

/// `name` is for messages. A fault of the text ends the process and names the line.
Plan parse_plan(const std::string& text, const std::string& name, int rank);

/// Reads the file that POLYRING_SOFTWARE_GPU names.
Plan read_plan();

/// Prints "software GPU: SENTENCE" to stderr and aborts.
[[noreturn]] void fail_loudly(const std::string& sentence);
/// Prints it and goes on.
void say(const std::string& sentence);

}  // namespace polyring::software_gpu
