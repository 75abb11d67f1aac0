// How much memory this process may still take, by all limits that the system sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/units.hpp"

namespace polyring {

/// What is left of each limit; nothing where there is none, or it cannot be read.
struct MemoryRoom {
  std::optional<Bytes> host;    // MemAvailable of /proc/meminfo, for all of the host's processes
  std::optional<Bytes> cgroup;  // the least over the control groups that this process is in
  std::uint64_t cgroup_id = 0;  // which of them has it: the inode of its folder, one of a kind on a machine
  std::optional<Bytes> shared_files;   // in /dev/shm, for all of the host's processes
  std::optional<Bytes> address_space;  // RLIMIT_AS of this process alone
  std::optional<Bytes> gpu;            // of its GPU's memory, for all that use it
  std::uint64_t gpu_id = 0;            // another for each of a host's GPUs

  bool operator==(const MemoryRoom&) const = default;
};

/// Control groups of version 1 and 2, with the limits of the groups above; file caches that the system would
/// give up do not count as taken. `root` is where /proc, /sys and /dev are; the limits that are in no file
/// are given.
MemoryRoom memory_room(const std::filesystem::path& root, std::optional<Bytes> free_in_shm,
                       std::optional<Bytes> address_space_limit);

/// Of this process.
MemoryRoom memory_room();

}  // namespace polyring
