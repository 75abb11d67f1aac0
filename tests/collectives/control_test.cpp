// Run under mpirun: what a setting of the MPI library is written from is as wide as any setting may be.
#include "collectives/runtime/mpi/control.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <exception>

namespace {
std::int64_t written = 0;
}

/// In place of the library's own, as MPI's profiling interface has it: takes a setting of eight bytes.
int MPI_T_cvar_write(MPI_T_cvar_handle, const void* value) {
  std::memcpy(&written, value, sizeof written);
  return MPI_SUCCESS;
}

namespace polyring {
namespace {

int run() {
  const MpiTools tools;
  for (const char* name : {"coll_tuned_allreduce_algorithm", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"}) {
    const auto control = MpiControl::find(name);
    if (!control) continue;
    int failures = 0;
    for (const int value : {5, -1, 0}) {
      control->write(value);
      if (written == value) continue;
      ++failures;
      fmt::print("{} is written, not {}\n", written, value);
    }
    return failures == 0 ? 0 : 1;
  }
  fmt::print("this library has none of the settings\n");
  return 1;
}

}  // namespace
}  // namespace polyring

int main() {
  const polyring::MpiWorld world;
  try {
    return polyring::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    world.abort(1);
  }
}
