#include "bench/launch/rank_cores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "topology/path.hpp"

namespace polyring {
namespace {

std::size_t index(int number) { return static_cast<std::size_t>(number); }

/// The cores of a package, or of one of its NUMA nodes.
struct Region {
  int package = 0;
  std::vector<int> numa_nodes;
  std::vector<int> cores;  // the allowed ones, as launchers number them
  int ranks = 0;           // that are to share them
  bool has_room() const { return ranks < static_cast<int>(cores.size()); }
};

/// Of each core of the machine: its number for a launcher; −1 where it is not allowed.
std::vector<int> launcher_numbers(const Machine& machine, const std::optional<AllowedCores>& allowed) {
  std::vector<int> numbers(index(machine.cores()), -1);
  if (!allowed) {
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  for (const int core : allowed->affinity) {
    const auto place = std::ranges::lower_bound(allowed->cpuset, core);
    numbers[index(core)] = static_cast<int>(place - allowed->cpuset.begin());
  }
  return numbers;
}

/// Packages number their cores in the order of their NUMA nodes.
std::vector<Region> regions_of(const Machine& machine, const std::optional<AllowedCores>& allowed,
                               bool by_numa) {
  const std::vector<int> numbers = launcher_numbers(machine, allowed);
  auto next = numbers.begin();
  std::vector<Region> regions;
  for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i) {
    const Package& package = machine.packages[index(i)];
    std::vector<int> nodes = package.numa_nodes;
    std::ranges::sort(nodes);
    const int count = static_cast<int>(nodes.size());
    const int parts = by_numa && count > 0 && package.cores % count == 0 ? count : 1;
    for (int part = 0; part < parts; ++part) {
      Region region{i, nodes, {}};
      if (parts > 1) region.numa_nodes = {nodes[index(part)]};
      const auto end = next + package.cores / parts;
      std::copy_if(next, end, std::back_inserter(region.cores), [](int number) { return number >= 0; });
      next = end;
      regions.push_back(std::move(region));
    }
  }
  return regions;
}

bool is_of(const Region& region, int numa) {
  return std::ranges::find(region.numa_nodes, numa) != region.numa_nodes.end();
}

/// The regions, the nearest to a GPU first.
std::vector<int> by_distance(const Machine& machine, const std::vector<Region>& regions, bool by_numa,
                             int gpu) {
  constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  const int numa = machine.gpus[index(gpu)].numa;
  const auto own = std::ranges::find_if(regions, [&](const Region& region) { return is_of(region, numa); });
  std::vector<std::size_t> hops;  // to each package
  for (int i = 0; i < static_cast<int>(machine.packages.size()); ++i) {
    const auto path = find_path(machine, {DeviceKind::gpu, gpu}, {DeviceKind::package, i});
    hops.push_back(path ? path->hops.size() : kNowhere);
  }
  if (by_numa) hops[index(own->package)] = 0;
  std::vector<int> order(regions.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) {
    const Region& region = regions[index(i)];
    return std::tuple(hops[index(region.package)], by_numa && !is_of(region, numa));
  });
  return order;
}

/// Of each rank; empty where some have none with room.
std::vector<int> regions_near_gpus(const Machine& machine, std::vector<Region>& regions, bool by_numa,
                                   int ranks, std::vector<int>& far_gpus) {
  const int gpus = static_cast<int>(machine.gpus.size());
  std::vector<std::vector<int>> orders;
  for (int gpu = 0; gpu < std::min(gpus, ranks); ++gpu)
    orders.push_back(by_distance(machine, regions, by_numa, gpu));
  std::vector<int> chosen;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<int>& order = orders[index(rank % gpus)];
    const auto near = std::ranges::find_if(order, [&](int i) { return regions[index(i)].has_room(); });
    if (near == order.end()) return {};
    if (near != order.begin()) far_gpus.push_back(rank % gpus);
    ++regions[index(*near)].ranks;
    chosen.push_back(*near);
  }
  std::ranges::sort(far_gpus);
  far_gpus.erase(std::unique(far_gpus.begin(), far_gpus.end()), far_gpus.end());
  return chosen;
}

/// The next rank is for the region that then has the most cores for each, or fewer ranks; ranks are numbered
/// region after region.
std::vector<int> regions_filled_evenly(std::vector<Region>& regions, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const auto share = [](const Region& region) {
      return std::pair(static_cast<double>(region.cores.size()) / (region.ranks + 1), -region.ranks);
    };
    ++std::ranges::max_element(regions, {}, share)->ranks;
  }
  std::vector<int> chosen;
  for (int i = 0; i < static_cast<int>(regions.size()); ++i)
    chosen.insert(chosen.end(), index(regions[index(i)].ranks), i);
  return chosen;
}

std::vector<std::vector<int>> shared_out(const std::vector<Region>& regions, const std::vector<int>& chosen) {
  std::vector<std::size_t> next(regions.size(), 0);
  std::vector<std::vector<int>> cores;
  for (const int i : chosen) {
    const Region& region = regions[index(i)];
    const std::size_t each = region.cores.size() / index(region.ranks);
    const auto first = region.cores.begin() + static_cast<std::ptrdiff_t>(next[index(i)]);
    cores.emplace_back(first, first + static_cast<std::ptrdiff_t>(each));
    next[index(i)] += each;
  }
  return cores;
}

}  // namespace

int usable_cores(const Machine& machine, const std::optional<AllowedCores>& allowed) {
  if (!allowed) return machine.cores();
  const int cores = static_cast<int>(allowed->affinity.size());
  const double limit = allowed->cpu_limit.value_or(cores);
  return limit < cores ? std::max(1, static_cast<int>(limit)) : cores;
}

RankCores cores_of_ranks(const Machine& machine, const std::optional<AllowedCores>& allowed, int ranks) {
  const bool known = std::ranges::none_of(machine.packages, [](const Package& p) { return p.cores <= 0; });
  const int most = allowed ? static_cast<int>(allowed->affinity.size()) : machine.cores();
  if (!known || ranks > most) return {};
  const bool by_numa = !machine.gpus.empty() && std::ranges::all_of(machine.gpus, [&](const Gpu& gpu) {
    return std::ranges::any_of(machine.packages, [&](const Package& package) {
      return std::ranges::find(package.numa_nodes, gpu.numa) != package.numa_nodes.end();
    });
  });
  std::vector<Region> regions = regions_of(machine, allowed, by_numa);
  RankCores result;
  const std::vector<int> chosen = machine.gpus.empty()
                                      ? regions_filled_evenly(regions, ranks)
                                      : regions_near_gpus(machine, regions, by_numa, ranks, result.far_gpus);
  result.of_rank = shared_out(regions, chosen);
  return result;
}

std::string allowed_text(const Machine& machine, const AllowedCores& allowed) {
  const std::size_t cores = allowed.affinity.size();
  const bool by_cpuset = allowed.cpuset.size() < index(machine.cores());
  const bool by_affinity = cores < allowed.cpuset.size();
  std::string text =
      fmt::format("{} of {} cores {} allowed", cores, machine.cores(), cores == 1 ? "is" : "are");
  if (by_cpuset || by_affinity) {
    text += fmt::format(" ({}{}{})", by_cpuset ? "cpuset" : "", by_cpuset && by_affinity ? " and " : "",
                        by_affinity ? "affinity" : "");
  }
  if (allowed.cpu_limit && *allowed.cpu_limit < static_cast<double>(cores))
    text += fmt::format(", for the time of {:.3g} (quota)", *allowed.cpu_limit);
  return text;
}

std::string core_list(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[i]);
    if (last > i) text += fmt::format("-{}", cores[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace polyring
