// What the fake NCCL pretends to be, and the faults it will have.
//
// Lines of the software GPU's plan that begin with `nccl`, and lines of a test:
//
//   nccl version 2.27.3
//   nccl seed 7                                    how often calls are in progress first
//   nccl rank 1 version 2.27.3                     what this rank of a communicator tells the others
//   nccl rank 1 hung start                         it never comes to the others
//   nccl rank 1 hung operation 3                   it never comes to the third operation
//   nccl rank 1 failed operation 3                 an asynchronous error; or `… as ncclSystemError`
//   nccl rank 1 refused operation 3                the call returns an error
//
// Without `rank 1`, all ranks have the fault. Operations count per communicator and rank, from 1.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <string>

namespace polyring::software_nccl {

/// Of one rank of a communicator; 0: no operation.
struct Faults {
  bool hung_start = false;
  std::uint64_t hung_operation = 0;
  std::uint64_t failed_operation = 0;
  std::uint64_t refused_operation = 0;
  ncclResult_t code = ncclSystemError;
  int version = 22809;
  std::uint64_t seed = 1;
};

/// Reads the lines anew each time. A fault of a line ends the process and names the line.
Faults faults_of(int rank);
/// Of this process.
int version();

/// These lines, without `nccl`, instead of those of the software GPU's plan; null: those again.
void replace_plan(const char* lines);

/// POLYRING_SOFTWARE_NCCL_LIMIT: the seconds after which a rank that waits is a fault; else 10.
double limit();

/// Prints "software NCCL: SENTENCE" to stderr; with POLYRING_SOFTWARE_NCCL_ABORT=1, ends the process.
void say(const std::string& sentence);
/// The last sentence of say(), of any thread; for ncclGetLastError().
std::string last_said();
/// Prints it and ends the process.
[[noreturn]] void fail_loudly(const std::string& sentence);

}  // namespace polyring::software_nccl
