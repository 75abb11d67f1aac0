#include "topology/inventory/formats/probe_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "topology/inventory/formats/aligned.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using Row = std::vector<std::string>;

constexpr std::string_view kLegend =
    "X      the device itself\n"
    "NV#    NVLink or xGMI, direct or through an NVSwitch; # is its bandwidth in GB/s per direction (NV40: "
    "40 GB/s),\n"
    "       not a number of links; NV? is one of unknown bandwidth, NV?x2 two bonded ones\n"
    "PIX    PCIe, across at most one switch\n"
    "PXB    PCIe, across several switches but no host bridge\n"
    "PHB    PCIe, across one host bridge\n"
    "NODE   PCIe, across several host bridges of one NUMA node\n"
    "SYS    across NUMA nodes or packages\n"
    "CPU    the nearest packages; NUMA the nearest NUMA node; ? is unknown\n";

constexpr std::string_view kC2cLegend =
    "C2C    NVLink-C2C, between a GPU and the CPU beside it; P2C is C2C and then the CPU's PCIe\n";

bool has_c2c(const Cluster& cluster) {
  return std::ranges::any_of(cluster.groups, [](const HostGroup& group) {
    return std::ranges::find(group.machine.links, LinkKind::c2c, &Link::kind) != group.machine.links.end();
  });
}

std::vector<DeviceId> gpus_and_nics(const Machine& machine) {
  std::vector<DeviceId> devices;
  for (int i = 0; i < static_cast<int>(machine.gpus.size()); ++i) devices.push_back({DeviceKind::gpu, i});
  for (int i = 0; i < static_cast<int>(machine.nics.size()); ++i) devices.push_back({DeviceKind::nic, i});
  return devices;
}

/// The fewest that are bonded on a hop of the path; 0 when that is unknown of one.
int links_on(const Machine& machine, const Path& path) {
  int fewest = std::numeric_limits<int>::max();
  for (const Hop& hop : path.hops)
    fewest = std::min(fewest, machine.links[static_cast<std::size_t>(hop.link)].count);
  return fewest;
}

std::string cell(const Machine& machine, DeviceId from, DeviceId to) {
  const auto path = find_path(machine, from, to);
  if (!path) return "-";
  if (path->type != PathType::nvl) return std::string(to_text(path->type));
  if (path->bandwidth.known()) return "NV" + significant(path->bandwidth.gigabytes_per_second());
  const int links = links_on(machine, *path);
  return links == 0 ? "NV?" : fmt::format("NV?x{}", links);
}

/// `0`, or `0,1` for a NIC on both sockets.
std::string packages_text(const Machine& machine, DeviceId device) {
  const std::vector<int> nearest = nearest_packages(machine, device);
  return nearest.empty() ? "?" : fmt::format("{}", fmt::join(nearest, ","));
}

std::string numa_text(const Machine& machine, DeviceId device) {
  const auto index = static_cast<std::size_t>(device.index);
  const int numa = device.kind == DeviceKind::gpu ? machine.gpus[index].numa : machine.nics[index].numa;
  return numa < 0 ? "?" : fmt::format("{}", numa);
}

std::vector<Row> table_of(const Machine& machine) {
  const std::vector<DeviceId> devices = gpus_and_nics(machine);
  std::vector<Row> table(1, Row{""});
  for (const DeviceId device : devices) table[0].push_back(machine.device_name(device));
  table[0].insert(table[0].end(), {"CPU", "NUMA"});
  for (const DeviceId from : devices) {
    Row row{machine.device_name(from)};
    for (const DeviceId to : devices) row.push_back(cell(machine, from, to));
    row.push_back(packages_text(machine, from));
    row.push_back(numa_text(machine, from));
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string probe_matrix(const Cluster& cluster) {
  std::string out;
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    out +=
        fmt::format("{}{}\n", machine.name, group.count == 1 ? "" : fmt::format(", {} equal", group.count));
    const bool bare = machine.gpus.empty() && machine.nics.empty();
    out += bare ? "no GPU and no NIC\n" : aligned(table_of(machine));
    out += "\n";
  }
  out += kLegend;
  if (has_c2c(cluster)) out += kC2cLegend;
  return out;
}

}  // namespace polyring
