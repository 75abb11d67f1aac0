#include "collectives/runtime/shared/room.hpp"

#include "base/memory_room.hpp"

namespace polyring {

std::optional<LittleRoom> too_little_room(std::size_t bytes) {
  const MemoryRoom room = memory_room();
  if (room.cgroup && bytes > room.cgroup->value) return LittleRoom{"the control group", *room.cgroup};
  if (room.host && bytes > room.host->value) return LittleRoom{"the host", *room.host};
  return std::nullopt;
}

}  // namespace polyring
