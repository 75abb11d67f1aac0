// IBM's POWER machines: GPUs on NVLink to each other and to the processor of their socket.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "topology/presets/catalogue.hpp"
#include "topology/presets/parts.hpp"
#include "topology/socket_buses.hpp"

namespace polyring::presets {
namespace {

/// What tells one AC922 from another.
struct Ac922 {
  int gpus_per_socket;
  int cores_per_socket;
  Bytes memory_per_socket;
  Bandwidth nvlink;  // of each GPU to each GPU of its socket, and to its processor
};

/// The GPUs of one socket, all joined to each other and to their package.
void add_socket_gpus(Machine& machine, DeviceId package, const GpuKind& kind, int count, int numa,
                     int host_bridge, Bandwidth nvlink) {
  const int first = static_cast<int>(machine.gpus.size());
  for (int i = 0; i < count; ++i) {
    const DeviceId gpu = add_gpu(machine, kind, numa, host_bridge);
    for (int other = first; other < gpu.index; ++other) {
      add_nvlink(machine, {DeviceKind::gpu, other}, gpu, nvlink);
    }
    add_nvlink(machine, gpu, package, nvlink);
  }
}

/// Of the machine type, which socket_buses.hpp must know.
void add_published_bus(Machine& machine, const std::array<DeviceId, 2>& packages, std::string_view type) {
  const SocketBus bus = published_socket_bus(type).value();
  add_socket_bus(machine, packages[0], packages[1], bus.bandwidth);
  machine.citations.push_back(bus.citation);
}

Machine ac922_machine(const Ac922& variant) {
  Machine machine;
  std::array<DeviceId, 2> packages;
  for (int socket = 0; socket < 2; ++socket) {
    packages[static_cast<std::size_t>(socket)] =
        add_package(machine,
                    {"IBM POWER9", variant.cores_per_socket, variant.memory_per_socket,
                     gigabytes_per_second(170), power()},
                    8 * socket);
  }
  for (int socket = 0; socket < 2; ++socket) {
    add_socket_gpus(machine, packages[static_cast<std::size_t>(socket)], gpu_product("V100-SXM2-16GB"),
                    variant.gpus_per_socket, 8 * socket, socket, variant.nvlink);
  }
  // One adapter with two ports; each port is reached from both sockets, over the socket's own eight lanes.
  for (int port = 0; port < 2; ++port) {
    const DeviceId nic = add_nic(machine, edr("ConnectX-5 EDR, one of the adapter's two ports"), -1, -1);
    // By their addresses the ports are functions of one device, which share those lanes.
    machine.nics.back().pci = fmt::format("0003:01:00.{}", port);
    for (const DeviceId package : packages) add_pcie(machine, nic, package, 0.5 * pcie4_x16());
  }
  add_published_bus(machine, packages, "8335-GTW");
  cite(machine, "one dual-port EDR ConnectX-5 a node, attached to both sockets, each over PCIe gen 4 x8",
       "EE Times, Inside the Summit supercomputer (multi-host adapter, PCIe 4.0); WikiChip, Summit (OLCF-4) "
       "(x8); "
       "hwloc topologies of such nodes, where both sockets see both ports, and their bus addresses");
  cite(machine, "170 GB/s of memory bandwidth a socket",
       "IBM Power System AC922 technical overview, REDP-5472");
  cite_latencies(machine);
  return machine;
}

}  // namespace

Preset minsky() {
  Machine machine;
  machine.model = "IBM Power System S822LC for HPC (8335-GTB)";
  std::array<DeviceId, 2> packages;
  for (int socket = 0; socket < 2; ++socket) {
    packages[static_cast<std::size_t>(socket)] = add_package(
        machine, {"IBM POWER8 with NVLink", 10, gibibytes(128), gigabytes_per_second(115), power()}, socket);
  }
  for (int socket = 0; socket < 2; ++socket) {
    const DeviceId package = packages[static_cast<std::size_t>(socket)];
    // Each GPU and each NIC has a host bridge of its own: 3 a socket, the NIC's first.
    for (int i = 0; i < 2; ++i) {
      const DeviceId gpu = add_gpu(machine, gpu_product("P100-SXM2"), socket, 3 * socket + 1 + i);
      add_nvlink(machine, gpu, package, gigabytes_per_second(40));
    }
    add_nvlink(machine, {DeviceKind::gpu, 2 * socket}, {DeviceKind::gpu, 2 * socket + 1},
               gigabytes_per_second(40));
    const DeviceId nic = add_nic(machine, edr("ConnectX-4 EDR"), socket, 3 * socket);
    add_pcie(machine, nic, package, pcie3_x16());
  }
  cite(machine,
       "2 NVLink 1.0 of 20 GB/s per direction join the GPUs of a socket, and 2 each GPU and its POWER8: 40 "
       "GB/s",
       "IBM Power Systems S822LC for HPC technical overview, REDP-5405; hwloc topology of such a node");
  cite(machine, "10 cores, 128 GB and 115 GB/s of memory bandwidth a socket",
       "REDP-5405; the memory size is an option, that of an LLNL node is taken");
  cite(machine, "one EDR adapter a socket on PCIe gen 3 x16: 15.75 GB/s",
       "REDP-5405 (slots); hwloc topology of such a node (one adapter a socket)");
  add_published_bus(machine, packages, "8335-GTB");
  cite_latencies(machine);
  return {std::move(machine),
          infiniband_tree_of_unknown_places("assumed: the DDL publications don't describe it")};
}

Preset ac922() {
  Machine machine = ac922_machine({2, 22, gibibytes(128), gigabytes_per_second(75)});
  machine.model = "IBM Power System AC922 (8335-GTW), 4x V100";
  cite(
      machine,
      "3 NVLink 2.0 of 25 GB/s per direction join the GPUs of a socket, and each GPU and its POWER9: 75 GB/s",
      "IBM Power System AC922 technical overview, REDP-5472");
  cite(machine, "22 cores and 128 GB a socket", "hwloc topology of a Sierra node");
  return {std::move(machine),
          infiniband_tree_of_unknown_places("assumed: as Summit's; Sierra's is tapered 2:1")};
}

Preset summit() {
  Machine machine = ac922_machine({3, 22, gibibytes(256), gigabytes_per_second(50)});
  machine.model = "IBM Power System AC922 (8335-GTX), 6x V100, as in Summit";
  cite(machine,
       "2 NVLink 2.0 of 25 GB/s per direction join each two GPUs of a socket, and each GPU and its POWER9: "
       "50 GB/s",
       "OLCF, Summit user guide; REDP-5472");
  cite(machine, "22 cores (21 for jobs) and 256 GB a socket", "OLCF, Summit user guide");
  return {std::move(machine), infiniband_tree_of_unknown_places("OLCF, Summit user guide")};
}

}  // namespace polyring::presets
