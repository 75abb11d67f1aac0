// Memory of one GPU, and of the host for copies to and from it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "collectives/cuda/gpu.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring::cuda {

/// Where something lies in a GPU's memory, for a rank that is in the same process or in another one.
struct GpuLocation {
  std::uint64_t address = 0;     // in the process of the rank whose memory it is
  std::uint64_t allocation = 0;  // the number of the piece of memory that it lies in
  std::uint64_t offset = 0;      // in bytes, from its beginning
  cudaIpcMemHandle_t handle{};   // of that piece
};

/// What this process has allocated on a GPU for its ranks there. What is given back stays for later
/// allocations: to free memory, CUDA waits for all that the GPU does. It is freed when there is no other
/// memory left, except what other processes may have mapped: CUDA forbids to free that before they have
/// closed it. AddressSanitizer knows what is in use.
class DeviceHeap {
 public:
  /// The one of this GPU.
  static DeviceHeap& of(int device);

  explicit DeviceHeap(int device) : device_(device) {}

  /// At least one byte. Throws Error(ExitCode::not_available) where there is not as much.
  Memory allocate(Bytes size);

  /// Throws a usage Error for what does not lie in allocate()d memory. `exports`: with a handle, for another
  /// process.
  GpuLocation locate(const std::byte* address, bool exports);

  /// From the address to the end of the allocate()d memory that it lies in; 0: in none.
  Bytes allocated(const std::byte* address);

  /// Bytes that have been given back, and can be freed for others.
  Bytes spare();

  /// What is in use now is not used again when it is given back: others may still use it.
  void keep_all();

 private:
  struct Piece {
    std::uint64_t number = 0;
    std::size_t bytes = 0;
    bool exported = false;
    bool kept = false;
    cudaIpcMemHandle_t handle{};
  };

  void give_back(std::byte* memory);
  std::byte* make(std::size_t bytes);
  void free_spare();

  int device_;
  std::uint64_t next_ = 0;
  std::mutex mutex_;
  std::map<const std::byte*, Piece> used_;  // by their beginnings
  std::map<std::byte*, Piece> spare_;
};

/// See GpuPlugin.
GpuAddress locate(const void* address);

/// Others' memory, mapped into this process.
class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  std::byte* at(Rank rank, const GpuLocation& location);

 private:
  std::map<std::pair<Rank, std::uint64_t>, std::byte*> mapped_;  // by the number of the piece
};

/// Host memory that the GPU copies from and to by itself. Throws Error(ExitCode::not_available) where there
/// is none.
Memory pinned_memory(Bytes size);

}  // namespace polyring::cuda
