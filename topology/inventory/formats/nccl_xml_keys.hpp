// What the writer and the reader of NCCL's topology XML must agree on.
#pragma once

#include <cstdint>

namespace polyring::nccl_xml {

/// An attribute of ours, GB/s per direction, beside those of NCCL, which skips it: the bandwidth of a link
/// that NCCL's numbers of lanes and links cannot say.
inline constexpr const char* kBandwidthKey = "polyring_GBps";
inline constexpr double kMostGigabytes = 1e6;

/// The first number of CPUs whose NUMA node is not known, where it must be no other's: Linux has no more
/// nodes than that (CONFIG_NODES_SHIFT of 10).
inline constexpr int kMadeUpCpu = 1024;

/// The other byte order.
constexpr std::uint64_t swapped(std::uint64_t value) {
  std::uint64_t result = 0;
  for (int byte = 0; byte < 8; ++byte) result = result << 8 | (value >> 8 * byte & 0xff);
  return result;
}

}  // namespace polyring::nccl_xml
