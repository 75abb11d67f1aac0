// The kernels' bodies compiled for the host, by name. A software GPU and tests run them; the plug-in does
// not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace polyring {

struct LaunchShape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 1;  // of a block
};

/// Called at each turn of a kernel's waiting for other ranks.
struct HostPause {
  void (*call)(void* context) = nullptr;
  void* context = nullptr;
  void operator()() const {
    if (call != nullptr) call(context);
  }
};

struct HostKernel {
  const char* name;  // as it is registered with CUDA
  std::size_t argument_bytes;
  /// Runs all threads of all blocks, one after the other, phase by phase. Returns when the kernel ends.
  void (*run)(const void* arguments, LaunchShape shape, const HostPause& pause);
};

std::span<const HostKernel> host_kernels();

/// Null where there is none of that name.
const HostKernel* find_host_kernel(std::string_view name);

}  // namespace polyring
