// The control groups that this process is in, of version 1 or 2, and their limits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace polyring {

struct ControlGroup {
  std::filesystem::path folder;
  bool unified = false;  // of version 2
};

/// The process's group under `controller` ("memory", "cpu") and those above it, the highest first. `root` is
/// where /proc and the mounts are, such as "/". None where there are none, or they cannot be read.
std::vector<ControlGroup> control_groups(const std::filesystem::path& root, std::string_view controller);

/// How many cores' time the groups may use: the least quota over its period. Nothing: there is no limit.
std::optional<double> cpu_limit(const std::filesystem::path& root);
/// For how long each group's threads have been held back by its limit since the group was made, in the order
/// of control_groups().
std::vector<Seconds> throttled_times(const std::filesystem::path& root);

/// The number that a file of one line begins with; nothing for "max".
std::optional<std::uint64_t> number_in_file(const std::filesystem::path& path);
/// The number behind `key` in a file of "key number" or "key: number kB".
std::optional<std::uint64_t> number_after(const std::filesystem::path& path, std::string_view key);

}  // namespace polyring
