// Preloaded into polyring by gpu_test.py: an MPI that takes buffers on the software GPU, in messages so small
// that it copies them by itself.
#include <mpi.h>

#include "tests/software_gpu/software_gpu.hpp"

namespace {

struct Allowed {
  Allowed() { polyring_software_gpu_allow(); }
  ~Allowed() { polyring_software_gpu_forbid(); }
  Allowed(const Allowed&) = delete;
  Allowed& operator=(const Allowed&) = delete;
};

}  // namespace

extern "C" {

int MPIX_Query_cuda_support() { return 1; }

int MPI_Allreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Allowed allowed;
  return PMPI_Allreduce(input, output, count, type, op, comm);
}

int MPI_Alltoall(const void* input, int sent, MPI_Datatype type, void* output, int received,
                 MPI_Datatype received_type, MPI_Comm comm) {
  const Allowed allowed;
  return PMPI_Alltoall(input, sent, type, output, received, received_type, comm);
}
}
