#include "topology/rank_nics.hpp"

#include <map>
#include <utility>

#include "topology/path.hpp"

namespace polyring {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Of the usable NICs those that are nearest to the device, and of these the widest.
std::vector<int> best_nics(const Machine& machine, const std::vector<int>& usable, DeviceId device) {
  std::vector<int> best;
  std::pair<std::size_t, double> least;  // hops, and bandwidth negated
  for (const int nic : usable) {
    const Path path = path_between(machine, device, {DeviceKind::nic, nic});
    const std::pair cost{path.hops.size(), -machine.nics[index(nic)].bandwidth().value};
    if (best.empty() || cost < least) {
      best.clear();
      least = cost;
    }
    if (cost == least) best.push_back(nic);
  }
  return best;
}

}  // namespace

std::vector<int> usable_nics(const Machine& machine) {
  std::vector<int> infiniband;
  std::vector<int> up;
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    if (!machine.nics[index(nic)].up()) continue;
    up.push_back(nic);
    if (machine.nics[index(nic)].kind == NicKind::infiniband) infiniband.push_back(nic);
  }
  return infiniband.empty() ? up : infiniband;
}

std::vector<int> rank_nics(const Machine& machine) {
  const std::vector<int> usable = usable_nics(machine);
  std::vector<int> nics;
  std::map<std::vector<int>, std::size_t> turns;  // of the ranks that have the same choice
  for (int rank = 0; rank < machine.ranks() && !usable.empty(); ++rank) {
    const std::vector<int> best = best_nics(machine, usable, machine.rank_device(rank));
    nics.push_back(best[turns[best]++ % best.size()]);
  }
  return nics;
}

}  // namespace polyring
