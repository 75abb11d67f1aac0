#include "topology/inventory/probe/hwloc_nvlink.hpp"

#include <hwloc/distances.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace polyring::probe {
namespace {

/// Which of the machine's devices a row of a matrix stands for.
std::optional<DeviceId> device_of(hwloc_obj_t object, const std::map<hwloc_obj_t, DeviceId>& gpus) {
  if (object == nullptr) return std::nullopt;
  if (object->subtype != nullptr && std::strcmp(object->subtype, "NVSwitch") == 0) {
    return DeviceId{DeviceKind::nvswitch, 0};
  }
  if (object->type == HWLOC_OBJ_PACKAGE)
    return DeviceId{DeviceKind::package, static_cast<int>(object->logical_index)};
  for (hwloc_obj_t above = object; above != nullptr; above = above->parent) {
    if (const auto gpu = gpus.find(above); gpu != gpus.end()) return gpu->second;
  }
  return std::nullopt;
}

/// Whether it has hwloc's 100 GB/s for every pair, which is no measure of xGMI: its back end for ROCm SMI
/// writes so whatever the links are, also of GPUs that others lie between (hwloc/topology-rsmi.c,
/// where its authors mark the number as not verified).
bool is_placeholder(const hwloc_distances_s& matrix) {
  const std::size_t count = matrix.nbobjs;
  for (std::size_t i = 0; i < count * count; ++i) {
    const bool of_itself = i % (count + 1) == 0;
    if (!of_itself && matrix.values[i] != 0 && matrix.values[i] != 100'000) return false;
  }
  return true;
}

/// `known`: whether the values are what the links carry.
void add_matrix(const hwloc_distances_s& matrix, LinkKind kind, bool known,
                const std::map<hwloc_obj_t, DeviceId>& gpus, Machine& machine) {
  // By pair, lower device first: bonded links to several NVSwitch ports add up.
  std::map<std::pair<DeviceId, DeviceId>, Bandwidth> links;
  const std::size_t count = matrix.nbobjs;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      const auto from = device_of(matrix.objs[a], gpus);
      const auto to = device_of(matrix.objs[b], gpus);
      const std::uint64_t megabytes = std::max(matrix.values[a * count + b], matrix.values[b * count + a]);
      if (!from || !to || *from == *to || megabytes == 0) continue;
      Bandwidth& sum = links[std::minmax(*from, *to)];
      sum = sum + Bandwidth{static_cast<double>(megabytes) * 1e6};
    }
  }
  for (const auto& [ends, bandwidth] : links) {
    const auto& [lower, higher] = ends;
    if (lower.kind == DeviceKind::nvswitch) machine.nvswitches = 1;
    const bool peers = lower.kind == higher.kind;
    machine.links.push_back(
        {peers ? lower : higher, peers ? higher : lower, kind, known ? bandwidth : Bandwidth{}, {}});
  }
  if (!known && !links.empty())
    machine.remarks.push_back(
        "hwloc wrote 100 GB/s for xGMI between every two GPUs, whatever joins them: which have a link of "
        "their own, and what it carries, is not known; run polyring probe there, where AMD's driver answers");
}

}  // namespace

void add_gpu_links(const HwlocTopology& topology, const std::map<hwloc_obj_t, DeviceId>& gpus,
                   Machine& machine) {
  constexpr std::pair<const char*, LinkKind> kMatrices[] = {{"NVLinkBandwidth", LinkKind::nvlink},
                                                            {"XGMIBandwidth", LinkKind::xgmi}};
  for (const auto& [name, kind] : kMatrices) {
    unsigned count = 1;
    hwloc_distances_s* matrix = nullptr;
    if (hwloc_distances_get_by_name(topology.get(), name, &count, &matrix, 0) != 0 || count == 0) continue;
    const bool known = kind != LinkKind::xgmi || !is_placeholder(*matrix);
    add_matrix(*matrix, kind, known, gpus, machine);
    hwloc_distances_release(topology.get(), matrix);
  }
}

}  // namespace polyring::probe
