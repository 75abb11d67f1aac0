// The parts that preset machines are put together from, and the citations that several machines share.
#pragma once

#include <string>

#include "topology/cluster.hpp"
#include "topology/presets/products.hpp"

namespace polyring::presets {

/// PCI Express x16 of a generation from 3 to 6, per direction; the narrower slots are fractions of it.
Bandwidth pcie_x16(int generation);
Bandwidth pcie3_x16();
Bandwidth pcie4_x16();
Bandwidth pcie5_x16();

/// What a kind of processor brings with it, and its memory.
struct SocketKind {
  std::string model;
  int cores;
  Bytes memory;
  Bandwidth memory_bandwidth;
  CpuIdentity cpu;
};

/// Of Intel's family 6; Linux lists its models' numbers (arch/x86/include/asm/intel-family.h).
CpuIdentity intel(int model);
CpuIdentity amd(int family, int model);
CpuIdentity power();
CpuIdentity arm();

/// NVIDIA's Grace with so much memory, of this bandwidth in GB/s.
SocketKind grace(Bytes memory, double gigabytes);

/// Each returns the device it added, named by its kind and index (`gpu0`, `mlx5_0`, ...).
DeviceId add_package(Machine& machine, const SocketKind& kind, int numa);
DeviceId add_switch(Machine& machine);
/// All GPUs of a machine must be of one kind; its citation is added with the first.
DeviceId add_gpu(Machine& machine, const GpuKind& kind, int numa, int host_bridge);
/// All NICs of a machine must be of one kind; its citation is added with the first. `numa` and `host_bridge`
/// are -1 for a NIC that hangs under several.
DeviceId add_nic(Machine& machine, const NicPart& part, int numa, int host_bridge);

/// One-way latencies of these links are NCCL's, see cite_latencies().
void add_nvlink(Machine& machine, DeviceId from, DeviceId to, Bandwidth bandwidth);
/// So many of the GPUs' links, NVLink or xGMI; xGMI has NVLink's latency.
void add_gpu_links(Machine& machine, DeviceId from, DeviceId to, const GpuLinks& links, int count);
/// NVLink-C2C between a GPU and the processor beside it.
void add_c2c(Machine& machine, DeviceId gpu, DeviceId package, Bandwidth bandwidth);
/// From a GPU to the NVSwitches. A transfer between GPUs crosses two such links.
void add_nvswitch_link(Machine& machine, DeviceId gpu, Bandwidth bandwidth);
void add_pcie(Machine& machine, DeviceId from, DeviceId to, Bandwidth bandwidth);
void add_socket_bus(Machine& machine, DeviceId from, DeviceId to, Bandwidth bandwidth);

void cite(Machine& machine, std::string fact, std::string source);
/// The sources of the latencies that the add_ functions above fill in.
void cite_latencies(Machine& machine);

/// A fat tree of InfiniBand switches that blocks nothing; half the ports of a leaf switch go to hosts.
/// `source` says where it was read that the tree blocks nothing.
Fabric infiniband_fat_tree(int ports_per_switch, std::string source);
/// The same where it is not known which hosts are near each other.
Fabric infiniband_tree_of_unknown_places(std::string source);
/// One network that blocks nothing, of this latency from NIC to NIC, which has `latency_source`.
Fabric flat_network(Seconds latency, std::string latency_source, std::string source);

/// What is assumed of a network of such NICs: InfiniBand's latencies, also of RoCE; TCP's of others. It
/// blocks nothing. `leaves`: which hosts share a leaf switch will be said.
Fabric usual_fabric(NicProtocol protocol, bool leaves);

}  // namespace polyring::presets
