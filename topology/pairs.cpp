#include "topology/pairs.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "topology/link_names.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

constexpr std::size_t kDetourHops = 2;

const Link& link_of(const Machine& machine, const Hop& hop) {
  return machine.links[static_cast<std::size_t>(hop.link)];
}

/// The widest NVLink or xGMI that joins two GPUs directly.
const Link* direct_link(const Machine& machine, int a, int b) {
  const DeviceId gpu_a{DeviceKind::gpu, a};
  const DeviceId gpu_b{DeviceKind::gpu, b};
  const Link* widest = nullptr;
  for (const Link& link : machine.links) {
    if (link.kind != LinkKind::nvlink && link.kind != LinkKind::xgmi) continue;
    const bool joins = (link.from == gpu_a && link.to == gpu_b) || (link.from == gpu_b && link.to == gpu_a);
    if (joins && (widest == nullptr || link.bandwidth > widest->bandwidth)) widest = &link;
  }
  return widest;
}

/// "no NVLink between them"; not every source of a machine knows of NVLinks.
std::string apart_text(const Machine& machine) {
  const auto has = [&](LinkKind kind) {
    return std::ranges::find(machine.links, kind, &Link::kind) != machine.links.end();
  };
  if (has(LinkKind::xgmi)) return "no xGMI between them";
  return has(LinkKind::nvlink) ? "no NVLink between them" : "no NVLink is known of";
}

std::string list_of(const Machine& machine, const std::vector<DeviceId>& way, DeviceKind kind) {
  std::vector<std::string> names;
  for (const DeviceId device : way) {
    if (device.kind == kind) names.push_back(machine.device_name(device));
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

/// "2 NVLinks of 20.0 GB/s each", "NVLink".
std::string nvlink_text(const Machine& machine, const Link& link) {
  const int count = nvlinks_in(machine, link);
  if (count == 0) return kind_name(machine, link);
  return fmt::format("{} NVLink{} of {}", count, count == 1 ? "" : "s",
                     speed_text({link.bandwidth.value / count}));
}

std::string direct_reason(const Machine& machine, const Path& path, const std::vector<DeviceId>& way) {
  const std::string nvlink = nvlink_text(machine, link_of(machine, path.hops.front()));
  const std::string switches = list_of(machine, way, DeviceKind::nvswitch);
  return switches.empty() ? fmt::format("direct {}", nvlink)
                          : fmt::format("through {}, {} each", switches, nvlink);
}

int numa_of(const Machine& machine, DeviceId id) {
  const auto at = static_cast<std::size_t>(id.index);
  return id.kind == DeviceKind::gpu ? machine.gpus[at].numa : machine.nics[at].numa;
}

int host_bridge_of(const Machine& machine, DeviceId id) {
  const auto at = static_cast<std::size_t>(id.index);
  return id.kind == DeviceKind::gpu ? machine.gpus[at].host_bridge : machine.nics[at].host_bridge;
}

/// "nothing tells which package gpu0 and mlx5_0 are near".
std::string unplaced_text(const Machine& machine, DeviceId from, DeviceId to) {
  const auto known = [&](DeviceId id) {
    const auto at = static_cast<std::size_t>(id.index);
    return id.kind == DeviceKind::gpu ? machine.gpus[at].package_known : machine.nics[at].package_known;
  };
  std::vector<std::string> names;
  for (const DeviceId id : {from, to}) {
    if (!known(id)) names.push_back(machine.device_name(id));
  }
  return fmt::format("nothing tells which package {} {} near", fmt::join(names, " and "),
                     names.size() == 1 ? "is" : "are");
}

std::string packages_reason(const Machine& machine, PathType type, const std::vector<DeviceId>& way) {
  const std::string packages = list_of(machine, way, DeviceKind::package);
  switch (type) {
    case PathType::c2c:
      return fmt::format("NVLink-C2C to {}", packages);
    case PathType::p2c:
      return fmt::format("NVLink-C2C to {}, then its PCIe", packages);
    case PathType::phb:
      return fmt::format("both under host bridge {} of {}", host_bridge_of(machine, way.front()), packages);
    case PathType::node:
      return host_bridge_of(machine, way.front()) < 0 || host_bridge_of(machine, way.back()) < 0
                 ? fmt::format("both under {}, by host bridges of which one is unknown", packages)
                 : fmt::format("under different host bridges of {}", packages);
    default:
      break;
  }
  if (std::ranges::count(way, DeviceKind::package, &DeviceId::kind) > 1)
    return fmt::format("across the sockets, {}", packages);
  return fmt::format("between NUMA nodes {} and {} of {}", numa_of(machine, way.front()),
                     numa_of(machine, way.back()), packages);
}

/// What the path's bandwidth comes from, where it has more than one link.
std::string narrowest_text(const Machine& machine, const Path& path) {
  const auto narrowest = std::ranges::min_element(
      path.hops, {}, [&](const Hop& hop) { return link_of(machine, hop).bandwidth; });
  const Link& link = link_of(machine, *narrowest);
  const char* what = link.bandwidth.known() ? "narrowest" : "of unknown speed";
  return fmt::format("{}: {}", what, link_name(machine, link));
}

std::string reason_of(const Machine& machine, const Path& path, const std::vector<DeviceId>& way) {
  if (path.type == PathType::nvl) return direct_reason(machine, path, way);
  const bool gpus = way.back().kind == DeviceKind::gpu;
  std::string reason = gpus ? apart_text(machine) + "; " : "";
  const std::string switches = list_of(machine, way, DeviceKind::pci_switch);
  if (path.type == PathType::pix) {
    reason += switches.empty() ? "directly on PCIe" : fmt::format("both under {}", switches);
  } else if (path.type == PathType::unknown) {
    return reason + fmt::format("{}; routes here take {}", unplaced_text(machine, way.front(), way.back()),
                                way_text(machine, way));
  } else if (path.type == PathType::pxb) {
    reason += fmt::format("under one host bridge, across {}", switches);
  } else {
    reason += packages_reason(machine, path.type, way);
  }
  return path.hops.size() > 1 ? fmt::format("{}; {}", reason, narrowest_text(machine, path)) : reason;
}

Pair pair_of(const Machine& machine, DeviceId from, DeviceId to) {
  const Path path = path_between(machine, from, to);
  std::vector<DeviceId> way = devices_of(machine, from, path);
  std::string reason = reason_of(machine, path, way);
  // What the way that routes take carries says nothing of the real one.
  const bool known = path.type != PathType::unknown;
  return {from,
          to,
          path.type,
          known ? path.bandwidth : Bandwidth{},
          path.latency,
          std::move(way),
          std::move(reason)};
}

Pair with_detour(const Machine& machine, Pair pair, const Detour& detour) {
  const DeviceId between{DeviceKind::gpu, detour.gpu};
  pair.reason = fmt::format("{}, but two through {}; routes here take {}, {}: {}", apart_text(machine),
                            machine.device_name(between), to_text(pair.type), speed_text(pair.bandwidth),
                            way_text(machine, pair.way));
  pair.type = PathType::nvb;
  pair.bandwidth = detour.bandwidth;
  pair.latency = detour.latency;
  pair.way = {pair.from, between, pair.to};
  return pair;
}

}  // namespace

std::optional<Detour> find_detour(const Machine& machine, int from_gpu, int to_gpu) {
  const Path path = path_between(machine, {DeviceKind::gpu, from_gpu}, {DeviceKind::gpu, to_gpu});
  if (path.type == PathType::nvl || path.hops.size() < kDetourHops) return std::nullopt;
  std::optional<Detour> widest;
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    const Link* first = direct_link(machine, from_gpu, gpu);
    const Link* second = direct_link(machine, gpu, to_gpu);
    if (first == nullptr || second == nullptr) continue;
    const Bandwidth bandwidth = std::min(first->bandwidth, second->bandwidth);
    if (widest && bandwidth <= widest->bandwidth) continue;
    widest = {gpu, bandwidth, first->latency + second->latency};
  }
  const bool narrow = widest && widest->bandwidth.known() && widest->bandwidth <= path.bandwidth;
  return narrow ? std::nullopt : widest;
}

std::vector<Pair> gpu_pairs(const Machine& machine) {
  std::vector<Pair> pairs;
  const int gpus = static_cast<int>(machine.gpus.size());
  for (int from = 0; from < gpus; ++from) {
    for (int to = from + 1; to < gpus; ++to) {
      Pair pair = pair_of(machine, {DeviceKind::gpu, from}, {DeviceKind::gpu, to});
      const auto detour = find_detour(machine, from, to);
      pairs.push_back(detour ? with_detour(machine, std::move(pair), *detour) : std::move(pair));
    }
  }
  return pairs;
}

std::vector<Pair> nic_pairs(const Machine& machine) {
  std::vector<Pair> pairs;
  const std::vector<std::vector<int>> nearest = rank_nics(machine);
  for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
    for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
      pairs.push_back(pair_of(machine, {DeviceKind::gpu, gpu}, {DeviceKind::nic, nic}));
      pairs.back().nearest =
          !nearest.empty() && std::ranges::count(nearest[static_cast<std::size_t>(gpu)], nic) > 0;
    }
  }
  return pairs;
}

std::string way_text(const Machine& machine, const std::vector<DeviceId>& way) {
  std::vector<std::string> names;
  for (const DeviceId device : way) names.push_back(machine.device_name(device));
  return fmt::format("{}", fmt::join(names, " - "));
}

}  // namespace polyring
