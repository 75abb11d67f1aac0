// Hosts of NVIDIA's superchips: GPUs that NVLink-C2C joins to the Grace processor beside them.
#include <utility>
#include <vector>

#include "topology/presets/catalogue.hpp"
#include "topology/presets/layouts.hpp"

namespace polyring::presets {
namespace {

constexpr const char* kJupiter = "Juelich Supercomputing Centre, JUPITER configuration";

}  // namespace

Preset gb200_nvl72() {
  Machine machine;
  machine.model = "NVIDIA DGX GB200, compute tray of an NVL72 (4x GB200)";
  const std::vector<DeviceId> packages =
      add_packages(machine, grace(gibibytes(480), 512), gigabytes_per_second(100));
  for (int i = 0; i < 4; ++i) {
    const int socket = i / 2;
    const DeviceId package = packages[static_cast<std::size_t>(socket)];
    add_c2c(machine, add_gpu(machine, gpu_product("GB200"), socket, -1), package, gigabytes_per_second(225));
  }
  for (int i = 0; i < 4; ++i) {
    const int socket = i / 2;
    add_pcie(machine, add_nic(machine, ndr("ConnectX-7 NDR"), socket, i),
             packages[static_cast<std::size_t>(socket)], pcie5_x16());
  }
  add_nvswitches(machine, gigabytes_per_second(900));
  cite(machine, "18 NVLink 5 of 50 GB/s per direction a GPU, to the NVSwitches of the rack: 900 GB/s",
       "NVIDIA GB200 NVL72 data sheet: 1.8 TB/s in both directions a GPU, 130 TB/s for 72");
  cite(machine, "2 Grace, 4 GPUs and 4 ConnectX-7 of 400 Gb/s a compute tray",
       "NVIDIA DGX GB Rack Scale Systems user guide, hardware");
  cite(machine, "72 cores, 480 GB of memory and 512 GB/s a Grace", "NVIDIA GB200 NVL72 data sheet");
  cite(machine, "NVLink-C2C of a Grace: 450 GB/s per direction, half of it to each of its 2 GPUs",
       "NVIDIA GB200 NVL72 data sheet (900 GB/s, both directions); the halves are assumed");
  cite(machine, "2 NICs on PCIe gen 5 x16 (63 GB/s) of each Grace", "assumed");
  cite(machine, "100 GB/s between the two Grace of a tray", "assumed: as between two Grace of JUPITER");
  cite(machine, "latency of an NVLink-C2C 0.3 us", "assumed: as between sockets");
  cite_latencies(machine);
  Fabric fabric = infiniband_tree_of_unknown_places("NVIDIA DGX SuperPOD reference architecture (DGX GB200)");
  fabric.hosts_per_nvlink_domain = 18;
  fabric.citations.push_back({"18 compute trays a rack, whose 72 GPUs are one NVLink domain",
                              "NVIDIA DGX GB Rack Scale Systems user guide, hardware"});
  return {std::move(machine), std::move(fabric)};
}

Preset gh200() {
  Machine machine;
  machine.model = "1x GH200, as in Vista";
  const DeviceId package = add_package(machine, grace(gibibytes(120), 512), 0);
  const GpuKind gpu = gpu_product("GH200-96GB");
  add_c2c(machine, add_gpu(machine, gpu, 0, -1), package, gpu.c2c);
  add_pcie(machine, add_nic(machine, ndr("ConnectX-7 NDR"), 0, 0), package, pcie5_x16());
  cite(machine,
       "one GH200 a host: 72 cores with 120 GB of memory, and 900 GB/s of NVLink-C2C in both directions",
       "Cornell Virtual Workshop, Vista (TACC), system components; NVIDIA GH200 data sheet");
  cite(machine, "512 GB/s of memory bandwidth with 120 GB", kJupiter);
  cite(machine, "one port of NDR InfiniBand",
       "Cornell Virtual Workshop, Vista (TACC), system components: NDR; one whole port a host is assumed");
  cite(machine, "the NIC on PCIe gen 5 x16: 63 GB/s", "assumed");
  cite(machine, "latency of an NVLink-C2C 0.3 us", "assumed: as between sockets");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_tree_of_unknown_places("Cornell Virtual Workshop, Vista (TACC), system components: two "
                                            "tiers of switches; that they block nothing is assumed")};
}

Preset gh200_quad() {
  Machine machine;
  machine.model = "4x GH200, as in JUPITER and Alps";
  const GpuKind gpu = gpu_product("GH200-96GB");
  NicPart nic = hdr("ConnectX-7 NDR200");
  nic.citation = {"NDR200: 24.2 GB/s of payload (200 Gb/s, less 3 % for headers and gaps)",
                  "InfiniBand Trade Association, rate table; the 3 % as in published figures"};
  std::vector<DeviceId> packages;
  for (int i = 0; i < 4; ++i) packages.push_back(add_package(machine, grace(gibibytes(120), 512), i));
  for (int i = 0; i < 4; ++i) {
    const DeviceId package = packages[static_cast<std::size_t>(i)];
    add_c2c(machine, add_gpu(machine, gpu, i, -1), package, gpu.c2c);
    add_pcie(machine, add_nic(machine, nic, i, i), package, pcie5_x16());
  }
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      add_nvlink(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b}, gigabytes_per_second(150));
      add_socket_bus(machine, packages[static_cast<std::size_t>(a)], packages[static_cast<std::size_t>(b)],
                     gigabytes_per_second(100));
    }
  }
  cite(
      machine,
      "4 GH200 a host: 72 cores, 120 GB of memory at 512 GB/s and 450 GB/s of NVLink-C2C per direction each; "
      "NVLink 4 of 150 GB/s per direction joins each two GPUs, 100 GB/s each two Grace",
      kJupiter);
  cite(machine, "4 ConnectX-7 of NDR200 a host", kJupiter);
  cite(machine, "Alps has 4 Slingshot NICs of 200 Gb/s in their place",
       "CSCS documentation, Alps hardware; the rate is assumed");
  cite(machine, "a NIC on PCIe gen 5 x16 (63 GB/s) of each Grace", "assumed");
  cite(machine, "latency of an NVLink-C2C 0.3 us", "assumed: as between sockets");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_tree_of_unknown_places(std::string(kJupiter) +
                                            " (Dragonfly+); that it blocks nothing is assumed")};
}

}  // namespace polyring::presets
