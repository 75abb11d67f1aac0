#include "tests/software_gpu/process.hpp"

#include <pthread.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/protection.hpp"

namespace polyring::software_gpu {
namespace {

std::atomic<Process*> begun{nullptr};
std::atomic<bool> forked{false};
thread_local int current_device = 0;
thread_local bool inside_host_function = false;

/// The device that one entry of CUDA_VISIBLE_DEVICES names: by number, or by the beginning of its UUID; or
/// -1.
int device_of_entry(const std::string& entry, const Plan& plan) {
  const int count = static_cast<int>(plan.devices.size());
  int index = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (error == std::errc() && end == entry.data() + entry.size()) return index < count ? index : -1;
  if (entry.rfind("GPU-", 0) != 0 && entry.rfind("MIG-", 0) != 0) return -1;
  for (int device = 0; device < count; ++device)
    if (uuid_text(plan, device).rfind(entry, 0) == 0) return device;
  return -1;
}

/// As CUDA reads CUDA_VISIBLE_DEVICES: up to the first entry that is no device, or was there before.
std::vector<int> visible_devices(const Plan& plan) {
  std::vector<int> visible;
  const char* setting = std::getenv("CUDA_VISIBLE_DEVICES");
  if (setting == nullptr) {
    for (std::size_t index = 0; index < plan.devices.size(); ++index)
      visible.push_back(static_cast<int>(index));
    return visible;
  }
  std::istringstream entries(setting);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const int device = device_of_entry(entry, plan);
    if (device < 0) break;
    for (const int before : visible)
      if (before == device) return {};
    visible.push_back(device);
  }
  return visible;
}

}  // namespace

Process& Process::get() {
  static Process* const process = new Process;
  return *process;
}

Process* Process::if_begun() { return begun.load(); }

Process::Process() : plan(read_plan()) {
  const std::vector<int> visible = visible_devices(plan);
  for (std::size_t ordinal = 0; ordinal < visible.size(); ++ordinal)
    devices_.push_back(std::make_unique<Device>(static_cast<int>(ordinal), visible[ordinal], plan));
  begin_protection(plan);
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  begun = this;
}

bool Process::is_forked() const { return forked; }

Device& Process::device(int ordinal) const {
  require(ordinal >= 0 && ordinal < device_count(), cudaErrorInvalidDevice);
  return *devices_[static_cast<std::size_t>(ordinal)];
}

Device* Process::of_physical(int physical) const {
  for (const auto& device : devices_)
    if (device->physical == physical) return device.get();
  return nullptr;
}

int Process::current_ordinal() { return current_device; }
void Process::set_current(int ordinal) { current_device = ordinal; }

bool in_host_function() { return inside_host_function; }
void set_in_host_function(bool inside) { inside_host_function = inside; }

}  // namespace polyring::software_gpu
