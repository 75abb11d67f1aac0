// Run under mpirun: what a setting of the MPI library is written from is as wide as any setting may be.
#include "collectives/runtime/mpi/control.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace {
std::int64_t written = 0;
}

/// In place of the library's own, by MPI's profiling interface: takes a setting of eight bytes.
int MPI_T_cvar_write(MPI_T_cvar_handle, const void* value) {
  std::memcpy(&written, value, sizeof written);
  return MPI_SUCCESS;
}

namespace polyring {
namespace {

TEST(MpiControl, IsWrittenFromEightBytes) {
  const MpiTools tools;
  int found = 0;
  for (const char* name : {"coll_tuned_allreduce_algorithm", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"}) {
    const auto control = MpiControl::find(name);
    if (!control) continue;
    ++found;
    for (const int value : {5, -1, 0}) {
      control->write(value);
      EXPECT_EQ(written, value);
    }
  }
  EXPECT_GT(found, 0) << "this library has none of the settings";
}

}  // namespace
}  // namespace polyring
