#include "topology/presets/parts.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace polyring::presets {
namespace {

// One-way latencies that NCCL's tuning model charges for a hop of its low-latency protocol
// (src/graph/tuning.cc): 0.6 us over NVLink, 1.0 us between two GPUs over PCIe (two links), 2.7 us between
// two GPUs over the network.
constexpr Seconds kNvlinkLatency = microseconds(0.6);
constexpr Seconds kNvswitchLinkLatency = microseconds(0.3);
constexpr Seconds kPcieLatency = microseconds(0.5);
constexpr Seconds kNetworkLatency = microseconds(1.7);
constexpr Seconds kSocketBusLatency = microseconds(0.3);
// Port to port through one InfiniBand switch: NVIDIA's QM8700 data sheet says 90 ns. A way over the spine
// crosses two switches more than one under a single leaf.
constexpr Seconds kSpineLatency = microseconds(0.18);

constexpr Seconds kSocketsLatency = microseconds(15);

void add_link(Machine& machine, DeviceId from, DeviceId to, LinkKind kind, Bandwidth bandwidth,
              Seconds latency) {
  machine.links.push_back({from, to, kind, bandwidth, latency});
}

void cite_network_latencies(Fabric& fabric) {
  fabric.citations.push_back(
      {"1.7 us from NIC to NIC under one leaf",
       "NCCL src/graph/tuning.cc: 2.7 us per network hop, protocol LL, less a PCIe link of 0.5 us at each "
       "end"});
  fabric.citations.push_back(
      {"0.18 us more over the spine: two more switches of 90 ns", "NVIDIA Quantum QM8700 data sheet"});
}

}  // namespace

// 8, 16 and 32 GT/s on 16 lanes with 128b/130b coding: 15.75, 31.5 and 63 GB/s.
// A flit of generation 6 carries 242 bytes of 256: 121 GB/s.
Bandwidth pcie_x16(int generation) {
  constexpr std::array kGigabytes{15.75, 31.5, 63.0, 121.0};
  return gigabytes_per_second(kGigabytes.at(static_cast<std::size_t>(generation - 3)));
}
Bandwidth pcie3_x16() { return pcie_x16(3); }
Bandwidth pcie4_x16() { return pcie_x16(4); }
Bandwidth pcie5_x16() { return pcie_x16(5); }

CpuIdentity intel(int model) { return {"x86_64", "GenuineIntel", 6, model}; }

CpuIdentity amd(int family, int model) { return {"x86_64", "AuthenticAMD", family, model}; }

CpuIdentity power() { return {"ppc64", {}}; }

CpuIdentity arm() { return {"arm64", {}}; }

SocketKind grace(Bytes memory, double gigabytes) {
  return {"NVIDIA Grace", 72, memory, gigabytes_per_second(gigabytes), arm()};
}

DeviceId add_package(Machine& machine, const SocketKind& kind, int numa) {
  const int index = static_cast<int>(machine.packages.size());
  machine.packages.push_back({fmt::format("package{}", index),
                              kind.model,
                              kind.cores,
                              kind.memory,
                              kind.memory_bandwidth,
                              {numa},
                              kind.cpu});
  return {DeviceKind::package, index};
}

DeviceId add_switch(Machine& machine) {
  const int index = static_cast<int>(machine.switches.size());
  machine.switches.push_back({fmt::format("switch{}", index), ""});
  return {DeviceKind::pci_switch, index};
}

DeviceId add_gpu(Machine& machine, const GpuKind& kind, int numa, int host_bridge) {
  if (machine.gpus.empty()) machine.citations.push_back(kind.citation);
  const int index = static_cast<int>(machine.gpus.size());
  machine.gpus.push_back(
      {fmt::format("gpu{}", index), kind.model, "", numa, host_bridge, kind.memory, kind.memory_bandwidth});
  return {DeviceKind::gpu, index};
}

DeviceId add_nic(Machine& machine, const NicPart& part, int numa, int host_bridge) {
  if (machine.nics.empty()) machine.citations.push_back(part.citation);
  const int index = static_cast<int>(machine.nics.size());
  const std::string usual = part.kind == NicKind::infiniband ? "mlx5_" : "eth";
  const std::string name = fmt::format("{}{}", part.device.empty() ? usual : part.device, index);
  machine.nics.push_back({name, part.model, "", numa, host_bridge, part.kind, {{1, true, part.port}}});
  return {DeviceKind::nic, index};
}

void add_nvlink(Machine& machine, DeviceId from, DeviceId to, Bandwidth bandwidth) {
  add_link(machine, from, to, LinkKind::nvlink, bandwidth, kNvlinkLatency);
}

void add_gpu_links(Machine& machine, DeviceId from, DeviceId to, const GpuLinks& links, int count) {
  add_link(machine, from, to, links.kind, count * links.each, kNvlinkLatency);
  machine.links.back().count = count;
}

void add_c2c(Machine& machine, DeviceId gpu, DeviceId package, Bandwidth bandwidth) {
  add_link(machine, gpu, package, LinkKind::c2c, bandwidth, kSocketBusLatency);
}

void add_nvswitch_link(Machine& machine, DeviceId gpu, Bandwidth bandwidth) {
  add_link(machine, gpu, {DeviceKind::nvswitch, 0}, LinkKind::nvlink, bandwidth, kNvswitchLinkLatency);
}

void add_pcie(Machine& machine, DeviceId from, DeviceId to, Bandwidth bandwidth) {
  add_link(machine, from, to, LinkKind::pcie, bandwidth, kPcieLatency);
}

void add_socket_bus(Machine& machine, DeviceId from, DeviceId to, Bandwidth bandwidth) {
  add_link(machine, from, to, LinkKind::socket_bus, bandwidth, kSocketBusLatency);
}

void cite(Machine& machine, std::string fact, std::string source) {
  machine.citations.push_back({std::move(fact), std::move(source)});
}

void cite_latencies(Machine& machine) {
  cite(machine,
       "latency of an NVLink 0.6 us (two links of 0.3 us through an NVSwitch), of a PCIe link 0.5 us",
       "NCCL src/graph/tuning.cc: 0.6 us per NVLink hop and 1.0 us per GPU-GPU hop over PCIe, protocol LL; "
       "the split into links is ours");
  cite(machine, "latency between the sockets 0.3 us", "assumed");
}

Fabric infiniband_fat_tree(int ports_per_switch, std::string source) {
  Fabric fabric;
  fabric.hosts_per_leaf = ports_per_switch / 2;
  fabric.latency = kNetworkLatency;
  fabric.spine_latency = kSpineLatency;
  fabric.citations = {
      {"a fat tree that blocks nothing", std::move(source)},
      {fmt::format("{} hosts a leaf: half the ports of a switch of {}, each rail on leaves of its own",
                   fabric.hosts_per_leaf, ports_per_switch),
       "assumed"}};
  cite_network_latencies(fabric);
  return fabric;
}

Fabric infiniband_tree_of_unknown_places(std::string source) {
  Fabric fabric;
  fabric.latency = kNetworkLatency + kSpineLatency;
  fabric.citations = {{"a fat tree that blocks nothing", std::move(source)},
                      {"which hosts a job has is unknown: all messages cross the spine", "assumed"}};
  cite_network_latencies(fabric);
  return fabric;
}

Fabric flat_network(Seconds latency, std::string latency_source, std::string source) {
  Fabric fabric;
  fabric.latency = latency;
  fabric.citations = {{"the network blocks nothing", std::move(source)},
                      {fmt::format("{} from NIC to NIC", to_text(latency)), std::move(latency_source)}};
  return fabric;
}

Fabric usual_fabric(NicProtocol protocol, bool leaves) {
  if (protocol == NicProtocol::ethernet || protocol == NicProtocol::efa)
    return flat_network(kSocketsLatency, "assumed", "assumed");
  Fabric fabric;
  fabric.citations = {{"the network blocks nothing", "assumed"}};
  fabric.latency = leaves ? kNetworkLatency : kNetworkLatency + kSpineLatency;
  if (leaves) fabric.spine_latency = kSpineLatency;
  if (!leaves) {
    fabric.citations.push_back(
        {"which hosts are near each other is unknown: all messages cross the spine", "assumed"});
  }
  cite_network_latencies(fabric);
  if (protocol == NicProtocol::roce)
    fabric.citations.push_back({"RoCE has InfiniBand's latencies", "assumed"});
  return fabric;
}

}  // namespace polyring::presets
