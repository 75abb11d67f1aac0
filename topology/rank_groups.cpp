#include "topology/rank_groups.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "topology/path.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

/// The way to the one package that is nearest; nothing where several are, or none is.
std::optional<std::vector<DeviceId>> way_to_package(const Machine& machine, DeviceId device) {
  if (device.kind == DeviceKind::package) return std::vector{device};
  std::optional<std::vector<DeviceId>> way;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (int package = 0; package < static_cast<int>(machine.packages.size()); ++package) {
    const auto path = find_path(machine, device, {DeviceKind::package, package});
    if (!path || path->hops.size() > fewest) continue;
    if (path->hops.size() == fewest) {
      way.reset();
      continue;
    }
    fewest = path->hops.size();
    way = devices_of(machine, device, *path);
  }
  return way;
}

/// `group_of(rank)`: the device that it belongs to, if any.
template <typename GroupOf>
std::vector<RankGroup> grouped(const Machine& machine, const char* joint, GroupOf group_of) {
  std::map<DeviceId, std::vector<int>> by_device;
  std::vector<int> rest;
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    const std::optional<DeviceId> device = group_of(rank);
    (device ? by_device[*device] : rest).push_back(rank);
  }
  const auto named = [&machine](std::vector<int> ranks, const std::string& many) {
    const int first = ranks.front();
    const bool one = ranks.size() == 1;
    return RankGroup{one ? machine.device_name(machine.rank_device(first)) : many, std::move(ranks)};
  };
  const auto count = [&machine](const std::vector<int>& ranks) {
    return ranks_text(machine, static_cast<int>(ranks.size()));
  };
  std::vector<RankGroup> groups;
  for (const auto& [device, ranks] : by_device)
    groups.push_back(named(ranks, fmt::format("{} {} {}", count(ranks), joint, machine.device_name(device))));
  if (!rest.empty())
    groups.push_back(named(rest, fmt::format("{}{}", groups.empty() ? "" : "the other ", count(rest))));
  return groups;
}

template <typename Range>
std::optional<DeviceId> first_switch(const Range& way) {
  const auto found = std::ranges::find(way, DeviceKind::pci_switch, &DeviceId::kind);
  return found == way.end() ? std::nullopt : std::optional(*found);
}

std::vector<RankGroup> ranks_by_switch(const Machine& machine, bool upper) {
  return grouped(machine, "behind", [&](int rank) -> std::optional<DeviceId> {
    auto way = way_to_package(machine, machine.rank_device(rank));
    if (!way) return std::nullopt;
    if (upper) std::ranges::reverse(*way);
    return first_switch(*way);
  });
}

bool is_gpu_fabric(const Link& link) {
  const auto on_it = [](DeviceId id) {
    return id.kind == DeviceKind::gpu || id.kind == DeviceKind::nvswitch;
  };
  return (link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi) && on_it(link.from) && on_it(link.to);
}

/// For each GPU, then for each NVSwitch, the least of those that it is joined with.
std::vector<int> islands(const Machine& machine) {
  const auto gpus = static_cast<int>(machine.gpus.size());
  const auto number = [&](DeviceId id) {
    return index(id.kind == DeviceKind::gpu ? id.index : gpus + id.index);
  };
  std::vector<int> island(index(gpus + machine.nvswitches));
  std::iota(island.begin(), island.end(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link& link : machine.links) {
      if (!is_gpu_fabric(link)) continue;
      int& a = island[number(link.from)];
      int& b = island[number(link.to)];
      changed |= a != b;
      a = b = std::min(a, b);
    }
  }
  return island;
}

}  // namespace

std::vector<RankGroup> single_ranks(const Machine& machine) {
  std::vector<RankGroup> groups;
  for (int rank = 0; rank < machine.ranks(); ++rank)
    groups.push_back({machine.device_name(machine.rank_device(rank)), {rank}});
  return groups;
}

std::vector<RankGroup> ranks_by_package(const Machine& machine) {
  return grouped(machine, "of", [&](int rank) -> std::optional<DeviceId> {
    const auto way = way_to_package(machine, machine.rank_device(rank));
    return way ? std::optional(way->back()) : std::nullopt;
  });
}

std::vector<RankGroup> ranks_by_upper_switch(const Machine& machine) {
  return ranks_by_switch(machine, true);
}

std::vector<RankGroup> ranks_by_lower_switch(const Machine& machine) {
  return ranks_by_switch(machine, false);
}

std::vector<RankGroup> ranks_by_island(const Machine& machine) {
  if (machine.gpus.empty()) return single_ranks(machine);
  const std::vector<int> island = islands(machine);
  std::vector<RankGroup> groups = grouped(machine, "joined with", [&](int rank) {
    return std::optional(DeviceId{DeviceKind::gpu, island[index(rank)]});
  });
  for (RankGroup& group : groups) {
    if (group.ranks.size() == 1) continue;
    std::vector<std::string> names;
    for (const int rank : group.ranks) names.push_back(machine.device_name(machine.rank_device(rank)));
    group.name = fmt::format("{} joined to each other ({})",
                             ranks_text(machine, static_cast<int>(names.size())), fmt::join(names, ", "));
  }
  return groups;
}

Machine with_gpu_fabric_alone(Machine machine) {
  if (machine.gpus.size() > 1 && ranks_by_island(machine).size() == 1)
    std::erase_if(machine.links, [](const Link& link) { return !is_gpu_fabric(link); });
  return machine;
}

bool gpu_fabric_joins_each_pair(const Machine& machine) {
  const auto gpus = static_cast<int>(machine.gpus.size());
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < a; ++b) {
      const auto path = find_path(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b});
      if (!path || path->type != PathType::nvl) return false;
    }
  }
  return gpus > 1;
}

std::string ranks_text(const Machine& machine, int ranks) {
  if (machine.gpus.empty()) return "the host";
  const char* noun =
      has_processes(machine) ? (ranks == 1 ? "process" : "processes") : (ranks == 1 ? "GPU" : "GPUs");
  return fmt::format("{} {}", ranks, noun);
}

}  // namespace polyring
