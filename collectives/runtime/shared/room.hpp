// Whether the system has memory left, before some is taken that it would give by ending other processes.
#pragma once

#include <cstddef>
#include <optional>

#include "base/units.hpp"

namespace polyring {

/// So much is worth a look at what the system has left, which takes some 100 us.
inline constexpr std::size_t kLooked = std::size_t{64} << 20;

struct LittleRoom {
  const char* place;  // "the host", or "the control group"
  Bytes left;
};

/// The place that has no room for so many bytes; nothing where all have.
std::optional<LittleRoom> too_little_room(std::size_t bytes);

}  // namespace polyring
