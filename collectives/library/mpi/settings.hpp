// What the user of the interposer may say, by environment variables.
#pragma once

#include <array>
#include <string>

#include "base/units.hpp"
#include "collectives/schedule/element.hpp"

namespace polyring::interposer {

/// What has a threshold of its own.
enum class SizeClass { float32, float64, int32, int64, gathered };
inline constexpr std::size_t kSizeClasses = 5;
SizeClass size_class_of(ElementKind kind);

/// What is shorter is passed on, whatever the thresholds: it is the same on all ranks, without asking.
inline constexpr Bytes kLeast{4096};

struct Settings {
  bool on = true;
  /// Of the longer of a rank's two buffers: what has fewer bytes is passed on.
  std::array<Bytes, kSizeClasses> thresholds{};
  /// For how long a rank waits for others that live; no limit where it is kNoLimit.
  Seconds timeout{};
  std::string counters;  // the file's name without the rank; empty: none
};
inline constexpr Seconds kNoLimit{1e8};

/// POLYRING_MPI (`on`, `off`), POLYRING_MPI_MIN_BYTES (`256K`, or `float=256K,allgather=1M`),
/// POLYRING_MPI_TIMEOUT (`30s`, `none`) and POLYRING_MPI_COUNTERS. Throws a usage Error that names the
/// variable.
Settings read_settings();

/// Of this process, read once. Settings that cannot be read are reported on stderr by rank 0, and switch the
/// library off.
const Settings& own_settings();

}  // namespace polyring::interposer
