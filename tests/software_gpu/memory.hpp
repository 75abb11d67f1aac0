// The memory that CUDA knows: of devices, of other processes' devices, and pinned memory of the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "tests/software_gpu/device.hpp"

namespace polyring::software_gpu {

struct Allocation {
  enum class Kind { device, imported, pinned, registered };
  Kind kind;
  std::byte* begin;
  std::size_t bytes;
  Device* device;                // whose it is; of host memory, the current one when it became known
  int physical;                  // the device in the plan whose memory it is; -1: the host's
  int descriptor = -1;           // of device memory of this process
  bool in_stream_order = false;  // by cudaMallocAsync
  unsigned flags = 0;            // of host memory
  int opened = 0;                // how often an imported one was

  bool on_device() const { return kind == Kind::device || kind == Kind::imported; }
};

// Process::mutex is held in all of these.

/// The allocation with this address in it, or null: then it is pageable memory of the host.
Allocation* find_allocation(const void* address);
void keep_allocation(const Allocation& allocation);
void forget_allocation(const std::byte* begin);
/// Whether memory of this device is open that another process has made.
bool has_opened_memory_of(int physical);

/// A new anonymous file of this size for memory that another process can open; throws Failure if that fails.
int make_shared_file(const char* name, std::size_t bytes);
std::size_t whole_pages(std::size_t bytes);

/// Whether reads and writes behind the end of an allocation are faults under AddressSanitizer.
void guard_end(const Allocation& allocation, bool guard);

}  // namespace polyring::software_gpu
