#include "topology/rank_nics.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

/// Of the fastest NIC's bandwidth: the rails of a host have one speed, or those of two generations in a row.
constexpr double kSlowest = 0.5;

Bandwidth bandwidth(const Machine& machine, int nic) { return machine.nics[index(nic)].bandwidth(); }

/// Of the usable NICs those that are nearest to the device. Hops alone don't tell: a NIC behind a switch of
/// this socket has as many as one that hangs on the other socket itself.
std::vector<int> best_nics(const Machine& machine, const std::vector<int>& usable, DeviceId device) {
  std::vector<int> best;
  std::tuple<PathType, double, std::size_t> least;  // type, bandwidth negated, hops
  for (const int nic : usable) {
    const Path path = path_between(machine, device, {DeviceKind::nic, nic});
    const std::tuple cost{path.type, -bandwidth(machine, nic).value, path.hops.size()};
    if (best.empty() || cost < least) {
      best.clear();
      least = cost;
    }
    if (cost == least) best.push_back(nic);
  }
  return best;
}

/// Without those that serve for management or storage beside the others.
std::vector<int> without_slow(const Machine& machine, std::vector<int> nics) {
  Bandwidth fastest;
  for (const int nic : nics) fastest = std::max(fastest, bandwidth(machine, nic));
  std::erase_if(nics, [&](int nic) { return bandwidth(machine, nic) < kSlowest * fastest; });
  return nics;
}

}  // namespace

std::vector<int> usable_nics(const Machine& machine) {
  const auto has_ports = [](const Nic& nic) { return !nic.ports.empty(); };
  const auto is_infiniband = [](const Nic& nic) { return nic.kind == NicKind::infiniband; };
  const bool known = std::ranges::any_of(machine.nics, has_ports);
  const bool known_of_infiniband =
      std::ranges::any_of(machine.nics, [&](const Nic& nic) { return is_infiniband(nic) && has_ports(nic); });
  std::vector<int> infiniband;
  std::vector<int> up;
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    const Nic& one = machine.nics[index(nic)];
    const bool may_be_up = is_infiniband(one) && !known_of_infiniband;
    if (known && !one.up() && !may_be_up) continue;
    up.push_back(nic);
    if (is_infiniband(one)) infiniband.push_back(nic);
  }
  return infiniband.empty() ? without_slow(machine, std::move(up)) : infiniband;
}

std::vector<std::vector<int>> rank_nics(const Machine& machine) {
  const std::vector<int> usable = usable_nics(machine);
  if (usable.empty()) return {};
  std::map<std::vector<int>, std::vector<int>> ranks_by_choice;
  for (int rank = 0; rank < machine.ranks(); ++rank)
    ranks_by_choice[best_nics(machine, usable, machine.rank_device(rank))].push_back(rank);
  std::vector<std::vector<int>> nics(index(machine.ranks()));
  for (const auto& [choice, ranks] : ranks_by_choice) {
    for (std::size_t turn = 0; turn < std::max(choice.size(), ranks.size()); ++turn)
      nics[index(ranks[turn % ranks.size()])].push_back(choice[turn % choice.size()]);
  }
  return nics;
}

}  // namespace polyring
