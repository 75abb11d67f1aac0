// Virtual machines with eight NVIDIA GPUs of the large clouds.
#include <utility>
#include <vector>

#include "topology/presets/catalogue.hpp"
#include "topology/presets/layouts.hpp"

namespace polyring::presets {
namespace {

constexpr const char* kNvlink4 = "18 NVLink 4 of 25 GB/s per direction a GPU, to 4 NVSwitches: 450 GB/s";
constexpr const char* kH100 = "NVIDIA H100 data sheet (900 GB/s, both directions)";

NicPart efa(const char* source) {
  NicPart nic = nic_by_rate(NicProtocol::efa, "100Gb/s", "NIC", source);
  nic.model = "Elastic Fabric Adapter, 100 Gb/s";
  return nic;
}

Fabric efa_network(const char* source) { return flat_network(microseconds(15), "assumed", source); }

void cite_sapphire_rapids(Machine& machine) {
  cite(machine, "307.2 GB/s of memory bandwidth (8 x DDR5-4800) a socket",
       "Intel Xeon Platinum 8480 product specifications");
  cite(machine, "96 GB/s between the sockets: 3 UPI links of 16 GT/s x 2 bytes", "assumed");
}

}  // namespace

Preset aws_p4d() {
  Machine machine;
  machine.model = "AWS p4d.24xlarge (8x A100 40GB)";
  const std::vector<DeviceId> packages = add_packages(
      machine, {"Intel Xeon Platinum 8275CL", 24, gibibytes(576), gigabytes_per_second(140.8), intel(85)},
      gigabytes_per_second(62.4));
  add_switch_trees(machine, packages, gpu_product("A100-SXM4-40GB"),
                   efa("AWS documentation, EC2 P4d: 400 Gb/s of 4 cards"), {4, 2, 1}, pcie3_x16(),
                   pcie3_x16());
  add_nvswitches(machine, gigabytes_per_second(300));
  cite(machine, "12 NVLink 3 of 25 GB/s per direction a GPU, to 6 NVSwitches: 300 GB/s",
       "NVIDIA A100 data sheet (600 GB/s, both directions); AWS documentation, EC2 P4d (NVSwitch)");
  cite(machine, "2 GPUs and one EFA adapter on each of 4 PCIe gen 3 x16 switches (15.75 GB/s), 2 a socket",
       "aws-ofi-nccl topology/p4d-24xl-topo.xml");
  cite(machine, "96 virtual processors, two a core, and 1,152 GiB of two sockets",
       "AWS documentation, EC2 P4d");
  cite(machine,
       "140.8 GB/s of memory bandwidth (6 x DDR4-2933) and 3 UPI links of 10.4 GT/s x 2 bytes a socket",
       "Intel Xeon Platinum 8200 product specifications; that the 8275CL has them is assumed");
  cite_latencies(machine);
  return {std::move(machine), efa_network("AWS documentation, EC2 UltraClusters of P4d")};
}

Preset aws_p5() {
  Machine machine;
  machine.model = "AWS p5.48xlarge (8x H100)";
  const std::vector<DeviceId> packages =
      add_packages(machine, {"AMD EPYC 7R13", 48, gibibytes(1024), gigabytes_per_second(204.8), amd(25, 1)},
                   gigabytes_per_second(96));
  add_switch_trees(machine, packages, gpu_product("H100-SXM"),
                   efa("AWS documentation, EC2 P5: 3,200 Gb/s of 32 cards"), {8, 1, 4}, pcie4_x16(),
                   pcie5_x16());
  add_nvswitches(machine, gigabytes_per_second(450));
  cite(machine, kNvlink4, kH100);
  cite(machine, "32 EFA network cards", "AWS documentation, EC2 user guide, EFA configuration for P5");
  cite(machine,
       "a GPU and 4 EFA adapters on a PCIe gen 5 x16 switch (63 GB/s), which hangs on the processor's gen 4 "
       "x16 "
       "(31.5 GB/s), four such a socket",
       "assumed: AWS states 400 Gb/s a GPU, and the processor has PCIe gen 4");
  cite(machine, "192 virtual processors, two a core, and 2 TiB of two sockets", "AWS documentation, EC2 P5");
  cite(machine, "204.8 GB/s of memory bandwidth (8 x DDR4-3200) a socket", "AMD EPYC 7003 data sheet");
  cite(machine, "96 GB/s between the sockets: 3 xGMI links of 16 lanes at 16 GT/s",
       "assumed: 3 or 4 links are usual");
  cite_latencies(machine);
  return {std::move(machine), efa_network("AWS documentation, EC2 UltraClusters of P5")};
}

Preset azure_nd_h100_v5() {
  Machine machine;
  machine.model = "Azure ND H100 v5 (8x H100)";
  const std::vector<DeviceId> packages = add_packages(
      machine, {"Intel Xeon Platinum 8480C", 48, gibibytes(950), gigabytes_per_second(307.2), intel(143)},
      gigabytes_per_second(96));
  add_switch_trees(machine, packages, gpu_product("H100-SXM"), ndr("ConnectX-7 NDR"), {8, 1, 1}, pcie5_x16(),
                   pcie5_x16());
  add_nvswitches(machine, gigabytes_per_second(450));
  cite(machine, kNvlink4, kH100);
  cite(machine, "a 400 Gb/s NVIDIA Quantum-2 ConnectX-7 for each GPU; 96 cores and 1,900 GiB of two sockets",
       "Microsoft Azure documentation, ND H100 v5 series");
  cite(machine, "a GPU and its NIC share a PCIe gen 5 x16 switch (63 GB/s), four such a socket",
       "Azure/azhpc-images topology/ndv5-topo.xml");
  cite_sapphire_rapids(machine);
  cite_latencies(machine);
  return {std::move(machine), infiniband_tree_of_unknown_places(
                                  "Microsoft Azure documentation, ND H100 v5 series (3.2 Tb/s a VM, "
                                  "whichever VMs of a scale set)")};
}

Preset gcp_a3_mega() {
  Machine machine;
  machine.model = "Google Cloud A3 Mega, a3-megagpu-8g (8x H100)";
  const std::vector<DeviceId> packages = add_packages(
      machine, {"Intel Xeon Platinum 8481C", 52, gibibytes(936), gigabytes_per_second(307.2), intel(143)},
      gigabytes_per_second(96));
  NicPart nic =
      nic_by_rate(NicProtocol::ethernet, "200Gb/s", "NIC",
                  "Google Cloud documentation, Networking and GPU machines: A3 Mega, 1,600 Gb/s for "
                  "GPUs by 8 NICs (GPUDirect-TCPXO), and 200 Gb/s more for other traffic");
  nic.model = "gVNIC 200 Gb/s";
  add_switch_trees(machine, packages, gpu_product("H100-SXM"), nic, {8, 1, 1}, pcie5_x16(), pcie5_x16());
  add_nvswitches(machine, gigabytes_per_second(450));
  cite(machine, kNvlink4, kH100);
  cite(machine, "a GPU and its NIC share a PCIe gen 5 x16 switch (63 GB/s), four such a socket",
       "assumed: as in other virtual machines of this kind");
  cite(machine, "208 virtual processors, two a core, and 1,872 GB of two sockets",
       "Google Cloud documentation, accelerator-optimized machines, A3");
  cite_sapphire_rapids(machine);
  cite_latencies(machine);
  return {std::move(machine),
          flat_network(microseconds(15), "assumed", "assumed: Google documents no oversubscription")};
}

}  // namespace polyring::presets
