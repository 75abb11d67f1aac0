#include "topology/inventory/probe/hwloc_topology.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring::probe {
namespace {

// hwloc prints banners on stderr about files and firmware that it finds odd; the user's own choice wins.
// Before main(), since other threads, as of MPI, may read the environment after that.
[[maybe_unused]] const int kNoBanners = setenv("HWLOC_HIDE_ERRORS", "2", 0);

hwloc_topology_t initialised() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    throw Error(ExitCode::not_available, fmt::format("hwloc_topology_init failed: {}", std::strerror(errno)));
  }
  return topology;
}

hwloc_topology_t make_topology() {
  // hwloc loads its plugins for the first topology and unloads them after the last: one stays, so that
  // reading a thousand files loads them once.
  static const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> kKeepsPlugins(
      initialised(), &hwloc_topology_destroy);
  return initialised();
}

}  // namespace

HwlocTopology::HwlocTopology() : topology_(make_topology()) {
  hwloc_topology_set_type_filter(get(), HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(get(), HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_type_filter(get(), HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  hwloc_topology_set_flags(get(), HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  // Looking at a machine should not start its CUDA and OpenCL drivers, nor open its X displays. What NVML and
  // ROCm know we read ourselves: in a child process, since drivers can hang.
  for (const char* component : {"opencl", "gl", "cuda", "nvml", "rsmi", "levelzero"}) {
    hwloc_topology_set_components(get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
}

void HwlocTopology::load_this_machine() {
  if (hwloc_topology_load(get()) != 0) {
    throw Error(ExitCode::not_available,
                fmt::format("hwloc cannot read this machine's topology: {}", std::strerror(errno)));
  }
}

HwlocTopology HwlocTopology::live() {
  HwlocTopology topology;
  topology.load_this_machine();
  return topology;
}

HwlocTopology HwlocTopology::live_cores() {
  HwlocTopology topology;
  hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
  topology.load_this_machine();
  return topology;
}

std::optional<HwlocTopology> HwlocTopology::from_xml(const std::string& xml) {
  HwlocTopology topology;
  // hwloc wants the terminating zero counted.
  if (hwloc_topology_set_xmlbuffer(topology.get(), xml.c_str(), static_cast<int>(xml.size()) + 1) != 0 ||
      hwloc_topology_load(topology.get()) != 0) {
    return std::nullopt;
  }
  return topology;
}

std::string info(hwloc_obj_t object, const char* name) {
  const char* value = hwloc_obj_get_info_by_name(object, name);
  if (value == nullptr) return {};
  const std::string_view text = value;
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

}  // namespace polyring::probe

namespace polyring {

std::string hwloc_version() {
  const unsigned version = hwloc_get_api_version();  // 0xMMmmrr00
  return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
}

std::string hwloc_built_with() { return HWLOC_VERSION; }

}  // namespace polyring
