// Preloaded into polyring by time_limits_test.py: calls of MPI that do not return.
// POLYRING_STOP=1:MPI_Finalize stops the process of rank 1 when it comes to that call;
// POLYRING_HANG=*:MPI_Abort leaves each rank inside.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

bool is_for(const char* variable, const char* call) {
  const char* wanted = std::getenv(variable);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  if (wanted == nullptr || rank == nullptr) return false;
  return wanted == std::string("*:") + call || wanted == rank + std::string(":") + call;
}

void come_to(const char* call) {
  if (is_for("POLYRING_STOP", call)) std::raise(SIGSTOP);
  while (is_for("POLYRING_HANG", call)) pause();
}

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  come_to("MPI_Init_thread");
  return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  come_to("MPI_Comm_split");
  return PMPI_Comm_split(comm, color, key, part);
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* copy, MPI_Request* request) {
  come_to("MPI_Comm_idup");
  return PMPI_Comm_idup(comm, copy, request);
}

int MPI_Allreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  come_to("MPI_Allreduce");
  return PMPI_Allreduce(input, output, count, type, op, comm);
}

// Before 4.2, MPICH on UCX is ended without MPI_Finalize (process_manager.hpp): here it shall be called.
int MPI_Get_library_version(char* text, int* length) {
  const int result = PMPI_Get_library_version(text, length);
  while (char* device = std::strstr(text, "ch4:ucx")) std::memcpy(device, "ch4:ofi", std::strlen("ch4:ofi"));
  return result;
}

int MPI_Finalize() {
  come_to("MPI_Finalize");
  return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int code) {
  come_to("MPI_Abort");
  return PMPI_Abort(comm, code);
}
}
