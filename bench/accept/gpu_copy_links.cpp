#include "bench/accept/gpu_copy_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

/// The way of a copy, and the package whose memory it uses; -1: none, or nothing tells which.
struct Way {
  std::optional<Path> path;
  int package = -1;
};

Way way_of(const Machine& machine, const std::vector<std::optional<int>>& gpus, const GpuCopy& copy) {
  const auto device = [&](int gpu) -> std::optional<DeviceId> {
    if (gpu < 0 || index(gpu) >= gpus.size() || !gpus[index(gpu)]) return std::nullopt;
    return DeviceId{DeviceKind::gpu, *gpus[index(gpu)]};
  };
  if (copy.from != kHostMemory && copy.to != kHostMemory) {
    const auto from = device(copy.from);
    const auto to = device(copy.to);
    return from && to ? Way{find_path(machine, *from, *to)} : Way{};
  }
  const auto gpu = device(copy.from == kHostMemory ? copy.to : copy.from);
  if (!gpu) return {};
  const std::vector<int> near = nearest_packages(machine, *gpu);
  if (near.size() != 1) return {};
  const DeviceId package{DeviceKind::package, near.front()};
  return copy.from == kHostMemory ? Way{find_path(machine, package, *gpu), near.front()}
                                  : Way{find_path(machine, *gpu, package), near.front()};
}

/// Whether copies reach most of the narrowest link.
bool says_much(const Path& path, const GpuCopy& copy) {
  if (path.type == PathType::c2c) return false;
  if (copy.from == kHostMemory || copy.to == kHostMemory) return true;
  return path.type == PathType::nvl || path.type == PathType::pix || path.type == PathType::pxb;
}

Bandwidth share_of_memory(const Machine& machine, const GpuCopy& copy) {
  const Bandwidth memory = machine.gpus[index(copy.from)].memory_bandwidth;
  return {memory.value / 2};  // each byte is read and written
}

}  // namespace

std::vector<CopyLink> links_of_copies(const Machine& machine, const std::vector<std::optional<int>>& gpus,
                                      std::span<const GpuCopy> at_once) {
  std::vector<Way> ways;
  std::map<std::pair<int, bool>, int> users;  // of a link's direction
  std::map<int, int> of_memory;
  for (const GpuCopy& copy : at_once) {
    const Way& way = ways.emplace_back(copy.from == copy.to ? Way{} : way_of(machine, gpus, copy));
    if (!way.path) continue;
    for (const Hop& hop : way.path->hops) ++users[{hop.link, hop.forward}];
    if (way.package >= 0) ++of_memory[way.package];
  }
  std::vector<CopyLink> links;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    CopyLink& link = links.emplace_back();
    const GpuCopy& copy = at_once[i];
    if (copy.from == copy.to) {
      const auto gpu = index(copy.from) < gpus.size() ? gpus[index(copy.from)] : std::nullopt;
      if (gpu) link.share = share_of_memory(machine, {*gpu, *gpu});
      link.kind = link.share.known() ? fmt::format("half of {}", to_text(2 * link.share)) : "";
      continue;
    }
    const auto& path = ways[i].path;
    if (!path) continue;
    link.nvlink = path->type == PathType::nvl;
    bool known = true;
    Bandwidth least;
    const auto limit = [&](Bandwidth whole, int sharers) {
      known = known && whole.known();
      const Bandwidth share{whole.value / sharers};
      if (!least.known() || share < least) least = share;
    };
    for (const Hop& hop : path->hops)
      limit(machine.links[index(hop.link)].bandwidth, users.at({hop.link, hop.forward}));
    link.kind = std::string(to_text(path->type));
    if (known) link.kind += " " + to_text(least);
    const int package = ways[i].package;
    // One GPU alone is far from what a socket's memory carries.
    if (package >= 0 && of_memory.at(package) > 2)
      limit(machine.packages[index(package)].memory_bandwidth, of_memory.at(package));
    if (known && says_much(*path, copy)) link.share = least;
  }
  return links;
}

}  // namespace polyring
