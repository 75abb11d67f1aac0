// Servers with x86 processors: NVIDIA's DGX machines up to the H100, Facebook's Big Basin and commodity
// servers.
#include <string_view>
#include <utility>

#include "topology/presets/catalogue.hpp"
#include "topology/presets/layouts.hpp"

namespace polyring::presets {
namespace {

using Packages = std::vector<DeviceId>;

/// Two sockets, those that are usual with this generation of PCIe.
Packages usual_packages(Machine& machine, int pcie_generation) {
  const UsualSockets usual = usual_sockets(pcie_generation);
  return add_packages(machine, usual.socket, usual.bus);
}

SocketKind broadwell(std::string model, int cores, Bytes memory) {
  return {std::move(model), cores, memory, gigabytes_per_second(76.8), intel(79)};
}

void cite_broadwell(Machine& machine) {
  cite(machine,
       "between the sockets 2 QPI links of 9.6 GT/s x 2 bytes = 38.4 GB/s; 76.8 GB/s of memory bandwidth",
       "Intel Xeon E5-2600 v4 product specifications");
}

/// Four GPUs on PCIe, and one 25 Gb/s NIC.
Preset roce_server(std::string model, std::string_view product, std::string source) {
  Machine machine;
  machine.model = std::move(model);
  const Packages packages = add_packages(machine, broadwell("Intel Xeon E5-2600 v4", 14, gibibytes(128)),
                                         gigabytes_per_second(38.4));
  for (int i = 0; i < 4; ++i) {
    const int socket = i / 2;
    add_pcie(machine, add_gpu(machine, gpu_product(product), socket, socket),
             packages[static_cast<std::size_t>(socket)], pcie3_x16());
  }
  const DeviceId nic = add_nic(
      machine, nic_by_rate(NicProtocol::roce, "25Gb/s", "NIC", "Mellanox ConnectX-4 Lx product brief"), 0, 0);
  machine.nics.back().model = "ConnectX-4 Lx 25GbE";
  add_pcie(machine, nic, packages[0], 0.5 * pcie3_x16());
  cite(machine, "4 GPUs a server and one NIC of 25 Gb/s with RoCE", std::move(source));
  cite(machine, "2 GPUs a socket, each on PCIe gen 3 x16 (15.75 GB/s) of one host bridge; no NVLink",
       "assumed: a usual server");
  cite(machine, "the NIC on PCIe gen 3 x8: 7.875 GB/s", "Mellanox ConnectX-4 Lx product brief");
  cite(machine, "14 cores and 128 GB a socket", "assumed");
  cite_broadwell(machine);
  cite_latencies(machine);
  return {std::move(machine), flat_network(microseconds(1.7), "assumed: as NCCL counts with InfiniBand",
                                           "assumed: the publication doesn't describe it")};
}

/// All of a DGX-1 but its NVLinks.
Machine dgx1(std::string model, const GpuKind& gpu) {
  Machine machine;
  machine.model = std::move(model);
  add_switch_trees(machine, usual_packages(machine, 3), gpu, edr("ConnectX-4 EDR"), {4, 2, 1}, pcie3_x16(),
                   pcie3_x16());
  return machine;
}

}  // namespace

Preset dgx1_p100() {
  Machine machine = dgx1("NVIDIA DGX-1 (8x P100)", gpu_product("P100-SXM2"));
  add_cube_mesh(machine, gigabytes_per_second(20));
  cite(machine,
       "hybrid cube mesh, 4 NVLink 1.0 of 20 GB/s per direction a GPU; 4 PCIe switches with 2 GPUs and an "
       "EDR adapter each, PCIe gen 3 x16 (15.75 GB/s)",
       "NVIDIA DGX-1 System Architecture, WP-08437-001");
  cite_broadwell(machine);
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_tree_of_unknown_places("NVIDIA DGX-1 System Architecture, WP-08437-001")};
}

Preset dgx1_v100() {
  Machine machine = dgx1("NVIDIA DGX-1 (8x V100)", gpu_product("V100-SXM2-16GB"));
  add_doubled_cube_mesh(machine, gigabytes_per_second(25));
  cite(machine,
       "hybrid cube mesh, 6 NVLink 2.0 of 25 GB/s per direction a GPU; 4 PCIe switches with 2 GPUs and an "
       "EDR adapter each, PCIe gen 3 x16 (15.75 GB/s)",
       "NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437-002");
  cite(machine, "which GPUs have a double link", "nvidia-smi topo -m of such a machine");
  cite_broadwell(machine);
  cite_latencies(machine);
  return {std::move(machine), infiniband_tree_of_unknown_places(
                                  "NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437-002")};
}

Preset dgx_a100() {
  Machine machine;
  machine.model = "NVIDIA DGX A100 (8x A100 40GB)";
  add_switch_trees(machine, usual_packages(machine, 4), gpu_product("A100-SXM4-40GB"), hdr("ConnectX-6 HDR"),
                   {4, 2, 2}, pcie4_x16(), pcie4_x16());
  add_nvswitches(machine, gigabytes_per_second(300));
  cite(machine, "12 NVLink 3 of 25 GB/s per direction a GPU, to 6 NVSwitches: 300 GB/s",
       "NVIDIA A100 data sheet (600 GB/s, both directions); NVIDIA DGX A100 user guide");
  cite(machine, "8 HDR adapters for compute, 2 with 2 GPUs on each PCIe gen 4 switch, x16 (31.5 GB/s)",
       "NVIDIA developer blog, Defining AI Innovation with DGX A100");
  cite(machine, "204.8 GB/s of memory bandwidth a socket", "AMD EPYC 7742 product page");
  cite(machine, "96 GB/s between the sockets: 3 xGMI links of 16 lanes at 16 GT/s",
       "assumed: 3 or 4 links are usual");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_fat_tree(40, "NVIDIA DGX SuperPOD reference architecture (DGX A100)")};
}

Preset dgx_h100() {
  Machine machine;
  machine.model = "NVIDIA DGX H100 (8x H100)";
  add_switch_trees(machine, usual_packages(machine, 5), gpu_product("H100-SXM"), ndr("ConnectX-7 NDR"),
                   {4, 2, 2}, pcie5_x16(), pcie5_x16());
  add_nvswitches(machine, gigabytes_per_second(450));
  cite(machine, "18 NVLink 4 of 25 GB/s per direction a GPU, to 4 NVSwitches: 450 GB/s",
       "NVIDIA H100 data sheet (900 GB/s, both directions); NVIDIA DGX H100 user guide");
  cite(machine, "8 NDR ports for compute on ConnectX-7 adapters, PCIe gen 5 x16 (63 GB/s)",
       "NVIDIA DGX H100 user guide");
  cite(machine, "2 GPUs and 2 adapters share a PCIe switch", "assumed: as in the DGX A100");
  cite(machine, "56 cores and 307.2 GB/s of memory bandwidth (8 x DDR5-4800) a socket",
       "Intel Xeon Platinum 8480 product specifications");
  cite(machine, "96 GB/s between the sockets: 3 UPI links of 16 GT/s x 2 bytes", "assumed");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_fat_tree(64, "NVIDIA DGX SuperPOD reference architecture (DGX H100)")};
}

Preset big_basin() {
  Machine machine;
  machine.model = "Facebook Big Basin (8x P100)";
  const Packages packages =
      add_packages(machine, broadwell("Intel Xeon E5 v4", 14, gibibytes(128)), gigabytes_per_second(38.4));
  add_switch_trees(machine, packages, gpu_product("P100-SXM2"), {}, {4, 2, 0}, pcie3_x16(), pcie3_x16());
  add_cube_mesh(machine, gigabytes_per_second(20));
  const DeviceId nic =
      add_nic(machine,
              {"ConnectX-4 50GbE",
               NicKind::ethernet,
               gigabits_per_second(50),
               {"one 50 Gb/s Ethernet NIC a server: 6.25 GB/s", "Goyal et al., arXiv 1706.02677"}},
              0, 4);
  add_pcie(machine, nic, packages[0], pcie3_x16());
  cite(machine, "8 P100 in a hybrid cube mesh, 4 NVLink 1.0 of 20 GB/s per direction a GPU",
       "Facebook Engineering, Introducing Big Basin; NVIDIA DGX-1 System Architecture, WP-08437-001 (the "
       "mesh)");
  cite(machine, "4 PCIe gen 3 x16 switches with 2 GPUs each, the NIC directly at the first socket",
       "assumed");
  cite(machine, "14 cores and 128 GB a socket", "assumed");
  cite_broadwell(machine);
  cite_latencies(machine);
  Fabric fabric;
  fabric.latency = microseconds(15);
  fabric.citations = {{"the network blocks nothing", "assumed"}, {"15 us from NIC to NIC (TCP)", "assumed"}};
  return {std::move(machine), std::move(fabric)};
}

Preset ethernet() {
  Machine machine;
  machine.model = "commodity server, 4x P100 PCIe, 1 Gb/s Ethernet";
  const Packages packages = add_packages(machine, broadwell("Intel Xeon E5-2600 v4", 14, gibibytes(128)),
                                         gigabytes_per_second(38.4));
  for (int i = 0; i < 4; ++i) {
    const int socket = i / 2;
    add_pcie(machine, add_gpu(machine, gpu_product("P100-PCIE-16GB"), socket, socket),
             packages[static_cast<std::size_t>(socket)], pcie3_x16());
  }
  const DeviceId nic = add_nic(machine,
                               {"Intel I350 1GbE",
                                NicKind::ethernet,
                                gigabits_per_second(1),
                                {"1 Gb/s Ethernet: 0.125 GB/s", "Intel I350 product brief"}},
                               0, 0);
  add_pcie(machine, nic, packages[0], gigabytes_per_second(2));
  cite(machine, "2 GPUs a socket, each on PCIe gen 3 x16 (15.75 GB/s) of one host bridge",
       "assumed: a usual server");
  cite(machine, "the NIC on PCIe 2.1 x4: 2 GB/s", "Intel I350 product brief");
  cite(machine, "14 cores and 128 GB a socket", "assumed");
  cite_broadwell(machine);
  cite_latencies(machine);
  Fabric fabric;
  fabric.latency = microseconds(25);
  fabric.citations = {{"the switches block nothing", "assumed"}, {"25 us from NIC to NIC (TCP)", "assumed"}};
  return {std::move(machine), std::move(fabric)};
}

Preset p100_roce() {
  return roce_server("4x P100 PCIe, 25 Gb/s RoCE", "P100-PCIE-16GB",
                     "Sergeev and Del Balso, Horovod, arXiv 1802.05799: 128 servers with 4 Pascal GPUs each "
                     "on 25 Gb/s RoCE; that they were on PCIe is assumed");
}

Preset v100_roce() {
  return roce_server("4x V100 PCIe, 25 Gb/s RoCE", "V100-PCIE-16GB",
                     "assumed: as the servers of arXiv 1802.05799 with the next generation of GPUs");
}

}  // namespace polyring::presets
