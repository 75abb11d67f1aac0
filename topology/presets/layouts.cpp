#include "topology/presets/layouts.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace polyring::presets {

UsualSockets usual_sockets(int pcie_generation) {
  if (pcie_generation <= 3) {
    return {{"Intel Xeon E5-2698 v4", 20, gibibytes(256), gigabytes_per_second(76.8), intel(79)},
            gigabytes_per_second(38.4),
            "the DGX-1"};
  }
  if (pcie_generation == 4) {
    return {{"AMD EPYC 7742", 64, gibibytes(512), gigabytes_per_second(204.8), amd(23, 49)},
            gigabytes_per_second(96),
            "the DGX A100"};
  }
  return {{"Intel Xeon Platinum 8480C", 56, gibibytes(1024), gigabytes_per_second(307.2), intel(143)},
          gigabytes_per_second(96),
          "the DGX H100"};
}

std::vector<DeviceId> add_packages(Machine& machine, const SocketKind& kind, Bandwidth socket_bus,
                                   int sockets) {
  std::vector<DeviceId> packages;
  for (int socket = 0; socket < sockets; ++socket) packages.push_back(add_package(machine, kind, socket));
  for (std::size_t a = 0; a < packages.size(); ++a) {
    for (std::size_t b = a + 1; b < packages.size(); ++b)
      add_socket_bus(machine, packages[a], packages[b], socket_bus);
  }
  return packages;
}

void add_switch_trees(Machine& machine, const std::vector<DeviceId>& packages, const GpuKind& gpu,
                      const NicPart& nic, const SwitchTrees& trees, Bandwidth pcie, Bandwidth gpu_pcie) {
  for (int s = 0; s < trees.switches; ++s) {
    const int socket = s * static_cast<int>(packages.size()) / trees.switches;
    const DeviceId pci_switch = add_switch(machine);
    add_pcie(machine, pci_switch, packages[static_cast<std::size_t>(socket)], pcie);
    for (int i = 0; i < trees.gpus_per_switch; ++i)
      add_pcie(machine, add_gpu(machine, gpu, socket, s), pci_switch, gpu_pcie);
    for (int i = 0; i < trees.nics_per_switch; ++i)
      add_pcie(machine, add_nic(machine, nic, socket, s), pci_switch, pcie);
  }
}

void add_nvswitches(Machine& machine, Bandwidth per_gpu) {
  machine.nvswitches = 1;
  for (int i = 0; i < static_cast<int>(machine.gpus.size()); ++i)
    add_nvswitch_link(machine, {DeviceKind::gpu, i}, per_gpu);
}

void add_cube_mesh(Machine& machine, Bandwidth nvlink) {
  const auto join = [&](int a, int b) {
    add_nvlink(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b}, nvlink);
  };
  for (const int half : {0, 4}) {
    for (int a = half; a < half + 4; ++a) {
      for (int b = a + 1; b < half + 4; ++b) join(a, b);
    }
  }
  for (int i = 0; i < 4; ++i) join(i, i + 4);
}

void add_doubled_cube_mesh(Machine& machine, Bandwidth nvlink) {
  // By pair of GPUs, as nvidia-smi topo -m shows them.
  constexpr std::array<std::pair<int, int>, 8> kDouble{
      {{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}}};
  add_cube_mesh(machine, nvlink);
  for (Link& link : machine.links) {
    const std::pair ends(link.from.index, link.to.index);
    if (link.kind == LinkKind::nvlink && std::ranges::find(kDouble, ends) != kDouble.end())
      link.bandwidth = 2 * nvlink;
  }
}

void add_full_mesh(Machine& machine, const GpuLinks& links, int per_pair) {
  for (int b = 1; b < static_cast<int>(machine.gpus.size()); ++b) {
    for (int a = 0; a < b; ++a)
      add_gpu_links(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b}, links, per_pair);
  }
}

void add_pairs(Machine& machine, const GpuLinks& links, int per_pair) {
  for (int a = 0; a + 1 < static_cast<int>(machine.gpus.size()); a += 2)
    add_gpu_links(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, a + 1}, links, per_pair);
}

}  // namespace polyring::presets
