#include "simulation/divided.hpp"

#include <algorithm>

namespace polyring {

Divided divided(const Schedule& schedule) {
  const auto full = [&](const Lane& lane) { return lane.slice.count / lane.chunks >= schedule.ranks; };
  Divided result{schedule, std::ranges::all_of(schedule.lanes, full)};
  if (!result.equal_blocks) return result;
  Count next = 0;
  for (Lane& lane : result.schedule.lanes) {
    lane.slice = {next, schedule.ranks};
    lane.chunks = 1;
    next = lane.slice.end();
  }
  result.schedule.count = next;
  return result;
}

}  // namespace polyring
