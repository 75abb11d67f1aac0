// Loaded before the MPI (LD_PRELOAD) it makes what one rank sends wrong, as a broken network card would: one
// bit of every message of 4 KiB and more. POLYRING_WRONG_RANK says which rank.
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace {

constexpr int kLeast = 4096;

bool is_wrong_rank() {
  const char* const wanted = std::getenv("POLYRING_WRONG_RANK");
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(name)) return wanted != nullptr && std::string_view(wanted) == rank;
  }
  return false;
}

/// A copy with another bit; it must last until the message has left, and so for ever.
const void* made_wrong(const void* data, int count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const auto bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
  static const bool wrong = is_wrong_rank();
  if (!wrong || bytes < kLeast) return data;
  static std::vector<std::unique_ptr<unsigned char[]>> copies;
  copies.push_back(std::make_unique<unsigned char[]>(bytes));
  std::memcpy(copies.back().get(), data, bytes);
  copies.back()[bytes / 2 + 2] ^= 0x40;
  return copies.back().get();
}

}  // namespace

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  return PMPI_Isend(made_wrong(data, count, type), count, type, to, tag, comm, request);
}
