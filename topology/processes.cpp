#include "topology/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace polyring {

Machine without_gpus(Machine machine) {
  const auto on_gpu_side = [](DeviceId id) {
    return id.kind == DeviceKind::gpu || id.kind == DeviceKind::nvswitch;
  };
  std::erase_if(machine.links,
                [&](const Link& link) { return on_gpu_side(link.from) || on_gpu_side(link.to); });
  machine.nvswitches = 0;
  machine.gpus.clear();
  machine.gpu_driver.clear();
  return machine;
}

std::string process_name(int index_on_host) { return fmt::format("process{}", index_on_host); }

Machine with_processes(Machine machine, int processes) {
  if (processes < 1) usage_error("{} processes on a host are impossible; give 1 or more", processes);
  machine = without_gpus(std::move(machine));
  machine.gpus.resize(static_cast<std::size_t>(processes));
  const int packages = static_cast<int>(machine.packages.size());
  for (int i = 0; i < processes; ++i) {
    machine.gpus[static_cast<std::size_t>(i)].name = process_name(i);
    const DeviceId package{DeviceKind::package, i * packages / processes};
    machine.links.push_back({{DeviceKind::gpu, i}, package, LinkKind::memory, {}, {}});
  }
  return machine;
}

bool has_processes(const Machine& machine) {
  return std::ranges::any_of(machine.links, [](const Link& link) { return link.kind == LinkKind::memory; });
}

}  // namespace polyring
