#include "collectives/runtime/mpi/comm_key.hpp"

#include "collectives/runtime/mpi/handle.hpp"

namespace polyring {

int make_comm_key(MPI_Comm_delete_attr_function* freed, MPI_Comm_delete_attr_function* ended) {
  int key = MPI_KEYVAL_INVALID;
  int end = MPI_KEYVAL_INVALID;
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &key, nullptr), "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ended, &end, nullptr), "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, end, nullptr), "MPI_Comm_set_attr");
  return key;
}

void* comm_attribute(MPI_Comm comm, int key) {
  void* attribute = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, key, static_cast<void*>(&attribute), &found), "MPI_Comm_get_attr");
  return found != 0 ? attribute : nullptr;
}

}  // namespace polyring
