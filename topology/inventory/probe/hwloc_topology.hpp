// An owner for hwloc's topology. Only the files of this folder that are named hwloc_* include hwloc.h.
#pragma once

#include <hwloc.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace polyring::probe {

/// A loaded topology, with all PCI bridges, the devices that matter, and OS devices.
class HwlocTopology {
 public:
  /// This machine. Throws an Error (not_available) when hwloc cannot read it.
  static HwlocTopology live();
  /// Of this machine, without its devices.
  static HwlocTopology live_cores();
  /// From XML of format 1 or 2; nothing when hwloc cannot read it.
  static std::optional<HwlocTopology> from_xml(const std::string& xml);

  hwloc_topology_t get() const { return topology_.get(); }

 private:
  struct Destroy {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  };

  HwlocTopology();
  /// Throws as live() does.
  void load_this_machine();

  std::unique_ptr<hwloc_topology, Destroy> topology_;
};

/// The object's info attribute of this name without surrounding blanks, empty when it has none.
std::string info(hwloc_obj_t object, const char* name);

}  // namespace polyring::probe
