// Servers with eight GPUs that are all joined to each other: NVIDIA's DGX H200 and B200, and AMD's MI300X.
#include <utility>
#include <vector>

#include "topology/presets/catalogue.hpp"
#include "topology/presets/layouts.hpp"

namespace polyring::presets {
namespace {

constexpr const char* kPlaces = "2 GPUs and 2 adapters share a PCIe switch";
constexpr const char* kAsDgxA100 = "assumed: as in the DGX A100";

}  // namespace

Preset dgx_h200() {
  Machine machine;
  machine.model = "NVIDIA DGX H200 (8x H200)";
  const std::vector<DeviceId> packages = add_packages(
      machine, {"Intel Xeon Platinum 8480C", 56, gibibytes(1024), gigabytes_per_second(307.2), intel(143)},
      gigabytes_per_second(96));
  add_switch_trees(machine, packages, gpu_product("H200-SXM"), ndr("ConnectX-7 NDR"), {4, 2, 2}, pcie5_x16(),
                   pcie5_x16());
  add_nvswitches(machine, gigabytes_per_second(450));
  cite(machine, "18 NVLink 4 of 25 GB/s per direction a GPU, to 4 NVSwitches: 450 GB/s",
       "NVIDIA H200 data sheet (900 GB/s, both directions); NVIDIA DGX BasePOD reference architecture (4 "
       "NVSwitches)");
  cite(machine, "8 ConnectX-7 of one NDR port each for compute, 56 cores and 1 TB of memory a socket",
       "NVIDIA DGX BasePOD reference architecture: 4 OSFP ports that serve 8 single-port ConnectX-7 of up to "
       "400 Gb/s, 112 cores of two Xeon Platinum 8480C, 2 TB");
  cite(machine, kPlaces, kAsDgxA100);
  cite(machine, "307.2 GB/s of memory bandwidth (8 x DDR5-4800) a socket",
       "Intel Xeon Platinum 8480 product specifications");
  cite(machine, "96 GB/s between the sockets: 3 UPI links of 16 GT/s x 2 bytes", "assumed");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_fat_tree(64, "NVIDIA DGX SuperPOD reference architecture (DGX H200)")};
}

Preset dgx_b200() {
  Machine machine;
  machine.model = "NVIDIA DGX B200 (8x B200)";
  const std::vector<DeviceId> packages = add_packages(
      machine, {"Intel Xeon Platinum 8570", 56, gibibytes(1024), gigabytes_per_second(358.4), intel(207)},
      gigabytes_per_second(120));
  add_switch_trees(machine, packages, gpu_product("B200-SXM"), ndr("ConnectX-7 NDR"), {4, 2, 2}, pcie5_x16(),
                   pcie5_x16());
  add_nvswitches(machine, gigabytes_per_second(900));
  cite(machine, "18 NVLink 5 of 50 GB/s per direction a GPU, to 2 NVSwitches: 900 GB/s",
       "NVIDIA DGX B200 user guide: 14.4 TB/s in both directions for 8 GPUs");
  cite(machine, "8 single-port ConnectX-7 of up to 400 Gb/s, 56 cores and 1 TB of memory a socket",
       "NVIDIA DGX B200 user guide");
  cite(machine, kPlaces, "nvidia-smi topo -m of such a machine");
  cite(machine, "358.4 GB/s of memory bandwidth (8 x DDR5-5600) a socket",
       "Intel Xeon Platinum 8570 product specifications");
  cite(machine, "120 GB/s between the sockets: 3 UPI links of 20 GT/s x 2 bytes", "assumed");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_fat_tree(64, "NVIDIA DGX SuperPOD reference architecture (DGX B200)")};
}

Preset mi300x() {
  Machine machine;
  machine.model = "8x MI300X, as an Azure ND MI300X v5";
  const std::vector<DeviceId> packages = add_packages(
      machine,
      {"Intel Xeon Scalable, 4th generation", 48, gibibytes(925), gigabytes_per_second(307.2), intel(143)},
      gigabytes_per_second(96));
  add_switch_trees(machine, packages, gpu_product("MI300X"), ndr("ConnectX-7 NDR"), {8, 1, 1}, pcie5_x16(),
                   pcie5_x16());
  const GpuLinks links = gpu_product("MI300X").links;
  add_full_mesh(machine, links, 1);
  cite(machine, "one Infinity Fabric (xGMI) link of 64 GB/s per direction joins each two GPUs", links.source);
  cite(machine, "a GPU and its NIC share a PCIe gen 5 x16 switch (63 GB/s), four such a socket",
       "ROCm/rccl tools/topo_expl/models/topo_8p_940.xml, of such a host");
  cite(machine, "a 400 Gb/s NVIDIA Quantum-2 ConnectX-7 for each GPU; 96 cores and 1,850 GiB of two sockets",
       "Microsoft Azure documentation, ND MI300X v5 series");
  cite(machine, "307.2 GB/s of memory bandwidth (8 x DDR5-4800) a socket",
       "Intel Xeon Platinum 8480 product specifications");
  cite(machine, "96 GB/s between the sockets: 3 UPI links of 16 GT/s x 2 bytes", "assumed");
  cite(machine, "latency of an xGMI link 0.6 us", "assumed: as of an NVLink");
  cite_latencies(machine);
  return {std::move(machine), infiniband_tree_of_unknown_places(
                                  "Microsoft Azure documentation, ND MI300X v5 series (3.2 Tb/s a VM, "
                                  "whichever VMs of a scale set)")};
}

}  // namespace polyring::presets
