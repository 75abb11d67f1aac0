#include "simulation/vendors/open_mpi.hpp"

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace polyring {
namespace {

using enum OpenMpiAllreduce;

constexpr auto kAnySize = std::numeric_limits<std::uint64_t>::max();
constexpr int kAnyRanks = std::numeric_limits<int>::max();

struct UpTo {
  std::uint64_t bytes;  // payloads below this
  OpenMpiAllreduce algorithm;
};

/// Communicators of fewer ranks than this, and of no fewer than the row before.
struct Row {
  int ranks;
  std::initializer_list<UpTo> sizes;
};

/// The thresholds of kOpenMpiDecision.
const std::initializer_list<Row> kRows{
    {4,
     {{8, ring},
      {4096, recursive_doubling},
      {8192, ring},
      {16384, recursive_doubling},
      {65536, ring},
      {262144, segmented_ring},
      {kAnySize, rabenseifner}}},
    {8, {{16, ring}, {8192, recursive_doubling}, {kAnySize, rabenseifner}}},
    {16, {{8192, recursive_doubling}, {kAnySize, rabenseifner}}},
    {32, {{64, segmented_ring}, {4096, recursive_doubling}, {kAnySize, rabenseifner}}},
    {64, {{128, segmented_ring}, {kAnySize, rabenseifner}}},
    {128, {{262144, recursive_doubling}, {kAnySize, rabenseifner}}},
    {256, {{131072, nonoverlapping}, {262144, recursive_doubling}, {kAnySize, rabenseifner}}},
    {512, {{4096, nonoverlapping}, {kAnySize, rabenseifner}}},
    {2048, {{2048, nonoverlapping}, {16384, recursive_doubling}, {kAnySize, rabenseifner}}},
    {4096,
     {{2048, nonoverlapping}, {4096, segmented_ring}, {16384, recursive_doubling}, {kAnySize, rabenseifner}}},
    {kAnyRanks,
     {{2048, nonoverlapping},
      {16384, segmented_ring},
      {32768, recursive_doubling},
      {kAnySize, rabenseifner}}},
};

}  // namespace

std::string_view to_text(OpenMpiAllreduce algorithm) {
  switch (algorithm) {
    case nonoverlapping:
      return "nonoverlapping";
    case recursive_doubling:
      return "recursive doubling";
    case ring:
      return "ring";
    case segmented_ring:
      return "segmented ring";
    case rabenseifner:
      break;
  }
  return "Rabenseifner";
}

OpenMpiAllreduce open_mpi_allreduce(int ranks, Bytes payload) {
  for (const Row& row : kRows) {
    if (ranks >= row.ranks) continue;
    for (const UpTo& size : row.sizes) {
      if (payload.value < size.bytes) return size.algorithm;
    }
  }
  return rabenseifner;
}

}  // namespace polyring
