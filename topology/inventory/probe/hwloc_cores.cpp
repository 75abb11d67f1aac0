#include "topology/inventory/probe/hwloc_cores.hpp"

#include "base/control_groups.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring::probe {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

}  // namespace

AllowedCores cores_of(const HwlocTopology& topology, hwloc_const_cpuset_t affinity) {
  const hwloc_const_cpuset_t cpuset = hwloc_topology_get_allowed_cpuset(topology.get());
  const Bitmap usable(hwloc_bitmap_dup(cpuset));
  hwloc_bitmap_and(usable.get(), usable.get(), affinity);
  AllowedCores cores;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr) {
    const int number = static_cast<int>(core->logical_index);
    if (hwloc_bitmap_intersects(core->cpuset, cpuset) != 0) cores.cpuset.push_back(number);
    if (hwloc_bitmap_intersects(core->cpuset, usable.get()) != 0) cores.affinity.push_back(number);
  }
  return cores;
}

}  // namespace polyring::probe

namespace polyring {

std::optional<AllowedCores> allowed_cores() {
  const auto topology = probe::HwlocTopology::live_cores();
  const probe::Bitmap affinity(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), affinity.get(), HWLOC_CPUBIND_THREAD) != 0) return std::nullopt;
  AllowedCores cores = probe::cores_of(topology, affinity.get());
  cores.cpu_limit = cpu_limit("/");
  const int all = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  const bool some = static_cast<int>(cores.affinity.size()) < all || cores.cpu_limit.value_or(all) < all;
  return some && !cores.affinity.empty() ? std::optional(std::move(cores)) : std::nullopt;
}

}  // namespace polyring
