#include "bench/accept/gpu_direct.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "topology/inventory/probe/files.hpp"
#include "topology/inventory/probe/pci_ids.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

bool is_gpu_of_nvidia(const fs::path& device) {
  constexpr long kVga = 0x0300;
  constexpr long kThreeD = 0x0302;
  const long device_class = probe::whole_number(probe::read_small_file(device / "class")).value_or(0) >> 8;
  return probe::whole_number(probe::read_small_file(device / "vendor")) ==
             static_cast<long>(probe::kNvidia) &&
         (device_class == kVga || device_class == kThreeD);
}

bool has_port_for_it(const fs::path& nic) {
  std::error_code none;
  if (!fs::exists(nic / "device", none)) return false;
  return std::ranges::any_of(probe::entries(nic / "ports"), [](const fs::path& port) {
    const std::string layer = probe::read_small_file(port / "link_layer");
    return layer.starts_with("InfiniBand") || layer.starts_with("Ethernet");
  });
}

std::string loaded_module(const std::string& modules) {
  for (const char* name : {"nvidia_peermem", "nv_peer_mem"})
    if (("\n" + modules).find(std::string("\n") + name + " ") != std::string::npos) return name;
  return "";
}

std::string kind_of_driver(const std::string& version) {
  if (version.empty()) return "";
  return version.find("Open Kernel Module") != std::string::npos ? "open" : "closed";
}

}  // namespace

bool GpuDirect::has_dma_buf() const {
  std::pair<int, int> version{0, 0};
  if (std::sscanf(kernel.c_str(), "%d.%d", &version.first, &version.second) != 2) return false;
  return driver == "open" && version >= std::pair(5, 12);
}

GpuDirect read_gpu_direct(const fs::path& root) {
  GpuDirect found;
  for (const fs::path& device : probe::entries(root / "sys/bus/pci/devices"))
    found.gpus += is_gpu_of_nvidia(device) ? 1 : 0;
  for (const fs::path& nic : probe::entries(root / "sys/class/infiniband"))
    if (has_port_for_it(nic)) found.nics.push_back(nic.filename().string());
  found.module = loaded_module(probe::read_small_file(root / "proc/modules"));
  found.driver = kind_of_driver(probe::read_small_file(root / "proc/driver/nvidia/version"));
  found.kernel = probe::read_small_file(root / "proc/sys/kernel/osrelease");
  while (!found.kernel.empty() && found.kernel.back() == '\n') found.kernel.pop_back();
  return found;
}

}  // namespace polyring
