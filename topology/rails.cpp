#include "topology/rails.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text.hpp"
#include "topology/path.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

std::vector<int> nics_to_choose_from(const Machine& machine) {
  std::vector<int> nics = usable_nics(machine);
  std::erase_if(nics, [&](int nic) { return !machine.nics[index(nic)].up(); });
  return nics;
}

/// What the functions of one adapter have in common.
std::string adapter_of(const Nic& nic) {
  if (!nic.system_guid.empty()) return nic.system_guid;
  return nic.pci.empty() ? nic.name : nic.pci.substr(0, nic.pci.rfind('.'));
}

std::string were(int rails) {
  return fmt::format("{} {}", counted(rails, "rail"), rails == 1 ? "was" : "were");
}

/// Takes one NIC after the other.
class Choice {
 public:
  explicit Choice(const Machine& machine) : machine_(machine) {
    for (const int nic : nics_to_choose_from(machine)) {
      const std::vector<int> packages = nearest_packages(machine, {DeviceKind::nic, nic});
      left_.push_back({nic, packages, way(nic, packages.empty() ? 0 : packages.front())});
    }
  }

  std::vector<int> take(int rails) {
    std::vector<int> taken;
    while (static_cast<int>(taken.size()) < rails) {
      const auto next =
          std::ranges::min_element(left_, {}, [&](const Candidate& candidate) { return rank(candidate); });
      taken.push_back(next->nic);
      if (!next->packages.empty()) ++of_package_[package_of(*next)];
      for (const std::string& part : std::set(next->way.begin(), next->way.end())) ++behind_[part];
      left_.erase(next);
    }
    std::ranges::sort(taken);
    return taken;
  }

 private:
  /// The PCIe switch nearest to the package, the one nearest to the NIC, and the adapter: what is absent is
  /// the adapter, too.
  using Way = std::array<std::string, 3>;

  struct Candidate {
    int nic = 0;
    std::vector<int> packages;  // the nearest; empty when unknown
    Way way;
  };

  Way way(int nic, int package) const {
    const std::string adapter = adapter_of(machine_.nics[index(nic)]);
    Way result{adapter, adapter, adapter};
    const DeviceId from{DeviceKind::nic, nic};
    const auto path = find_path(machine_, from, {DeviceKind::package, package});
    if (!path) return result;
    std::vector<DeviceId> devices = devices_of(machine_, from, *path);
    std::erase_if(devices, [](DeviceId device) { return device.kind != DeviceKind::pci_switch; });
    if (!devices.empty()) {
      result[0] = machine_.device_name(devices.back());
      result[1] = machine_.device_name(devices.front());
    }
    return result;
  }

  /// Of the nearest packages the one with the fewest NICs so far.
  int package_of(const Candidate& candidate) {
    return *std::ranges::min_element(candidate.packages, {},
                                     [&](int package) { return of_package_[package]; });
  }

  /// The least comes next.
  std::tuple<bool, int, double, int, int, int, int> rank(const Candidate& candidate) {
    const bool unknown = candidate.packages.empty();
    const auto& [outer, inner, adapter] = candidate.way;
    return {unknown,
            unknown ? 0 : of_package_[package_of(candidate)],
            -machine_.nics[index(candidate.nic)].bandwidth().value,
            behind_[outer],
            behind_[inner],
            behind_[adapter],
            candidate.nic};
  }

  const Machine& machine_;
  std::vector<Candidate> left_;
  std::map<int, int> of_package_;      // how many were taken
  std::map<std::string, int> behind_;  // the same, of switches and adapters
};

}  // namespace

std::vector<int> rail_nics(const Machine& machine, int rails) {
  const auto known = std::ssize(nics_to_choose_from(machine));
  if (known == 0) {
    usage_error("{} asked for, but no NIC of machine '{}' is known to be up; {}leave the rails out",
                were(rails), machine.name,
                usable_nics(machine).empty() ? "" : "say what they carry by --assume nic=400Gb/s, or ");
  }
  if (rails < 1 || rails > known) {
    usage_error(
        "{} asked for, but machine '{}' has {} up that lead{} to other hosts; give a number from 1 to {}",
        were(rails), machine.name, counted(known, "NIC"), known == 1 ? "s" : "", known);
  }
  return Choice(machine).take(rails);
}

Machine with_rails(Machine machine, int rails) {
  const std::vector<int> used = rail_nics(machine, rails);
  for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
    if (std::ranges::binary_search(used, nic)) continue;
    for (Port& port : machine.nics[index(nic)].ports) port.up = false;
  }
  return machine;
}

std::string rails_text(const Machine& machine, int rails) {
  std::vector<std::string> names;
  for (const int nic : rail_nics(machine, rails)) {
    const std::vector<int> packages = nearest_packages(machine, {DeviceKind::nic, nic});
    names.push_back(fmt::format("{} (processor{} {})", machine.nics[index(nic)].name,
                                packages.size() > 1 ? "s" : "",
                                packages.empty() ? "?" : fmt::format("{}", fmt::join(packages, " and "))));
  }
  const auto all = std::ssize(nics_to_choose_from(machine));
  return fmt::format("{} of {} {} used: {}", rails, counted(all, "NIC"), rails == 1 ? "is" : "are",
                     fmt::join(names, ", "));
}

}  // namespace polyring
