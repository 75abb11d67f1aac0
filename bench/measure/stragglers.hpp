// Stragglers: ranks that the others had to wait for.
//
// A rank that is slow between two iterations makes the others wait at the barrier before the next one. A rank
// that does not run for a while in the midst of one makes them wait anywhere: it notices itself that it did
// not run (see Watchdog).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

struct Straggler {
  Rank rank = 0;
  int times = 0;
  Seconds longest;
};

/// One rank's part of an iteration, in microseconds.
struct Delay {
  double before = 0;  // from the barrier before the previous iteration until it came to this one's
  double waited = 0;  // at this one's
  double paused = 0;  // since it came there, it did not run
};

/// Of one iteration, given each rank's part: how late each rank came, 0 when in time. Late is who lets half
/// of the ranks wait for more than 100 ms and ten times what an iteration takes, and itself took that much
/// longer than half of them: to be let out of a barrier sooner than the others is not to be late. So is who
/// did not run for that long.
std::vector<Seconds> lateness(std::span<const Delay> of_ranks, double usual_us);

/// Collective. Who was late for which of the iterations; `delays` has this rank's part of each.
std::vector<Straggler> find_stragglers(const World& world, std::span<const Delay> delays, double usual_us);

/// Of several measurements.
class Stragglers {
 public:
  void add(const std::vector<Straggler>& stragglers);
  /// "rank 1 (node07) came 2.00 s late once; the others waited".
  std::vector<std::string> sentences(const World& world) const;

 private:
  std::map<Rank, Straggler> by_rank_;
};

}  // namespace polyring
