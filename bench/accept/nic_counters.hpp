// What the ports of a host have counted, and its TCP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace polyring {

/// By port ("mlx5_0 port 1", "eth0"), the counters of what should not happen, by their names in sysfs; under
/// kTcp what TCP sent and sent again: OutSegs and RetransSegs. Only what can be read.
using NicCounters = std::map<std::string, std::map<std::string, std::uint64_t>>;

inline constexpr const char* kTcp = "TCP";

/// Of InfiniBand's and RoCE's ports, and of network interfaces that are devices. `root` is where /sys and
/// /proc are.
NicCounters read_nic_counters(const std::filesystem::path& root);

/// By how much each has grown; those that have not are left out.
NicCounters grown(const NicCounters& before, const NicCounters& after);

/// Whether it is one of InfiniBand's that stay at their largest value, which is this one.
bool is_full(const std::string& counter, std::uint64_t value);

/// Whether a counter that grows tells of packets that were lost or came late, as where buffers overflow, and
/// not of a link that is bad.
bool tells_of_loss(const std::string& counter);

}  // namespace polyring
