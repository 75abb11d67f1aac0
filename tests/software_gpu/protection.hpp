// Who may touch device memory: streams while they work, and nobody else.
//
// Device memory lies in ranges of addresses that are reserved for it. Where the CPU has protection keys, each
// device has a key, and each thread has its own rights. Elsewhere pages are closed. The first touch by a
// thread that has the right opens its allocation, for all threads, until no thread has rights any more: so a
// touch without the right is only seen while the allocation is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/software_gpu/device.hpp"

namespace polyring::software_gpu {

void begin_protection(const Plan& plan);
const char* protection_name();

/// Maps `bytes` of a file as memory of a device, and closes it. `near` says which part of the reserved
/// addresses: a device, or -1 for memory of other processes. Null where no addresses are left.
std::byte* map_device_memory(int descriptor, std::size_t bytes, int owner, int near);
void unmap_device_memory(std::byte* begin);

/// This thread may touch memory of these devices while the object lives.
class Rights {
 public:
  explicit Rights(DeviceSet devices);
  ~Rights();
  Rights(const Rights&) = delete;
  Rights& operator=(const Rights&) = delete;

 private:
  DeviceSet before_;
};

void allow(DeviceSet devices);
void forbid();

/// Does `work` with the rights to these devices. Returns the address where it touched other memory, if it
/// did; it then did not go on.
std::optional<std::uintptr_t> touches_other_memory(DeviceSet devices, const std::function<void()>& work);

}  // namespace polyring::software_gpu
