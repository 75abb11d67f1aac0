// Stragglers: ranks that the others had to wait for.
//
// Who comes last to the barrier before an iteration waits the least there. A rank that does not run for a
// while in the midst of an iteration makes the others wait without being late anywhere: it notices itself
// that it did not run (see Watchdog).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectives/mpi/world.hpp"
#include "topology/units.hpp"

namespace polyring {

struct Straggler {
  Rank rank = 0;
  int times = 0;
  Seconds longest;
};

/// Of one iteration: for each rank how late it came, 0 when in time. `waited_us` has for each rank how long
/// it waited for the others, less the time that it did not run. Late is who let half of the ranks wait for
/// more than 100 ms and ten times what an iteration takes.
std::vector<Seconds> lateness(std::span<const double> waited_us, double usual_us);

/// Collective. Who was late for which of the iterations; `waited_us` has this rank's part of each.
std::vector<Straggler> find_stragglers(const MpiWorld& world, std::span<const double> waited_us,
                                       double usual_us);

/// Of several measurements.
class Stragglers {
 public:
  void add(const std::vector<Straggler>& stragglers);
  /// "rank 1 (node07) came 2.00 s late once; the others waited".
  std::vector<std::string> sentences(const MpiWorld& world) const;

 private:
  std::map<Rank, Straggler> by_rank_;
};

}  // namespace polyring
