#include "topology/inventory/formats/probe_paths.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "topology/inventory/formats/aligned.hpp"
#include "topology/pairs.hpp"

namespace polyring {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

constexpr std::string_view kLegend =
    "NVL   NVLink or xGMI, direct or through an NVSwitch\n"
    "NVB   two NVLinks through another GPU: NCCL's choice, which routes and simulations here don't take\n"
    "C2C   NVLink-C2C, between a GPU and the CPU beside it; P2C: C2C, then the CPU's PCIe\n"
    "PIX   PCIe, across at most one switch; PXB: across several switches but no host bridge\n"
    "PHB   PCIe, across one host bridge; NODE: across several of one NUMA node (NCCL says PHB)\n"
    "SYS   across NUMA nodes or packages\n"
    "GB/s  of the narrowest link, in each direction; us: of all links, one way; ? is unknown\n"
    "*     the NIC by which routes leave the host; where a GPU has several, they share what it sends\n";

std::string gigabytes_text(Bandwidth bandwidth) {
  return bandwidth.known() ? significant(bandwidth.gigabytes_per_second()) : "?";
}

/// Hosts read from files have no latencies.
std::string microseconds_text(Seconds latency) {
  return latency.value > 0 ? significant(latency.value * 1e6) : "?";
}

Row row_of(const Machine& machine, const Pair& pair) {
  return {machine.device_name(pair.from),
          machine.device_name(pair.to) + (pair.nearest ? " *" : ""),
          std::string(to_text(pair.type)),
          gigabytes_text(pair.bandwidth),
          microseconds_text(pair.latency),
          way_text(machine, pair.way),
          pair.reason};
}

std::string table_of(const Machine& machine, const std::vector<Pair>& pairs) {
  std::vector<Row> rows{{"from", "to", "type", "GB/s", "us", "way", "why"}};
  for (const Pair& pair : pairs) rows.push_back(row_of(machine, pair));
  return aligned(rows);
}

Json to_json(const Machine& machine, const Pair& pair, bool nic) {
  Json way = Json::array();
  for (const DeviceId device : pair.way) way.push_back(machine.device_name(device));
  Json json{
      {"from", machine.device_name(pair.from)},
      {"to", machine.device_name(pair.to)},
      {"type", to_text(pair.type)},
      {"GBps", pair.bandwidth.known() ? Json(rounded(pair.bandwidth.gigabytes_per_second())) : Json(nullptr)},
      {"latency_us", pair.latency.value > 0 ? Json(rounded(pair.latency.value * 1e6)) : Json(nullptr)},
      {"way", std::move(way)},
      {"reason", pair.reason}};
  if (nic) json["nearest"] = pair.nearest;
  return json;
}

Json to_json(const Machine& machine, const std::vector<Pair>& pairs, bool nics) {
  Json array = Json::array();
  for (const Pair& pair : pairs) array.push_back(to_json(machine, pair, nics));
  return array;
}

}  // namespace

std::string probe_paths(const Cluster& cluster) {
  std::string out;
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    const std::vector<Pair> gpus = gpu_pairs(machine);
    const std::vector<Pair> nics = nic_pairs(machine);
    out +=
        fmt::format("{}{}\n", machine.name, group.count == 1 ? "" : fmt::format(", {} equal", group.count));
    if (gpus.empty() && nics.empty()) out += "fewer than two GPUs, and no GPU with a NIC: no pairs\n";
    if (!gpus.empty()) out += "\nGPU to GPU\n" + table_of(machine, gpus);
    if (!nics.empty()) out += "\nGPU to NIC\n" + table_of(machine, nics);
    out += "\n";
  }
  return out + std::string(kLegend);
}

std::string probe_paths_json(const Cluster& cluster) {
  Json hosts = Json::array();
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    hosts.push_back({{"host", machine.name},
                     {"gpus", to_json(machine, gpu_pairs(machine), false)},
                     {"nics", to_json(machine, nic_pairs(machine), true)}});
  }
  // Names come from files and firmware, and may not be UTF-8.
  return hosts.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace polyring
