#include "collectives/cuda/memory.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/error.hpp"
#include "base/poison.hpp"
#include "collectives/cuda/check.hpp"

namespace polyring::cuda {
namespace {

[[noreturn]] void no_memory(Bytes wanted, int device) {
  std::size_t free = 0;
  std::size_t all = 0;
  cudaGetLastError();
  const bool known = cudaMemGetInfo(&free, &all) == cudaSuccess;
  throw Error(ExitCode::not_available,
              fmt::format("GPU {} has no {} of memory{}; use smaller sizes, or fewer ranks on a GPU", device,
                          to_text(wanted), known ? fmt::format(", {} are free", to_text(Bytes{free})) : ""));
}

constexpr std::size_t kLarge = 1 << 20;

/// Sizes that differ little are made equal, so that they can take each other's place.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t kLeast = 512;
  return std::max(kLeast, bytes < kLarge ? std::bit_ceil(bytes) : (bytes + kLarge - 1) / kLarge * kLarge);
}

}  // namespace

/// Never destroyed: at the end of the process CUDA may be gone.
DeviceHeap& DeviceHeap::of(int device) {
  static std::mutex mutex;
  static auto& heaps = *new std::map<int, DeviceHeap>;
  const std::lock_guard lock(mutex);
  return heaps.try_emplace(device, device).first->second;
}

Memory DeviceHeap::allocate(Bytes size) {
  const std::size_t bytes = rounded(size.value);
  const std::lock_guard lock(mutex_);
  check(cudaSetDevice(device_), "use a GPU (cudaSetDevice)");
  // A little longer is good enough.
  const auto fits = [&](const auto& piece) {
    return piece.second.bytes >= bytes && piece.second.bytes <= bytes + bytes / 8;
  };
  const auto spare = std::ranges::find_if(spare_, fits);
  std::byte* memory = nullptr;
  if (spare != spare_.end()) {
    memory = spare->first;
    unpoison(memory, spare->second.bytes);
    used_.emplace(memory, spare->second);
    spare_.erase(spare);
  } else {
    memory = make(bytes);
    used_.emplace(memory, Piece{.number = next_++, .bytes = bytes});
  }
  poison(memory + size.value, used_.at(memory).bytes - size.value);
  return {memory, [this](std::byte* given) { give_back(given); }};
}

std::byte* DeviceHeap::make(std::size_t bytes) {
  void* made = nullptr;
  cudaError_t result = cudaMalloc(&made, bytes);
  if (result == cudaErrorMemoryAllocation && !spare_.empty()) {
    cudaGetLastError();
    free_spare();
    result = cudaMalloc(&made, bytes);
  }
  if (result == cudaErrorMemoryAllocation) no_memory(Bytes{bytes}, device_);
  check(result, "allocate memory (cudaMalloc)");
  return static_cast<std::byte*>(made);
}

void DeviceHeap::free_spare() {
  std::erase_if(spare_, [](const auto& piece) {
    if (piece.second.exported) return false;
    unpoison(piece.first, piece.second.bytes);
    cudaFree(piece.first);
    return true;
  });
}

void DeviceHeap::give_back(std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto piece = used_.find(memory);
  if (!piece->second.kept) {
    poison(memory, piece->second.bytes);
    spare_.emplace(memory, piece->second);
  }
  used_.erase(piece);
}

void DeviceHeap::keep_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [memory, piece] : used_) piece.kept = true;
}

Bytes DeviceHeap::spare() {
  const std::lock_guard lock(mutex_);
  Bytes all;
  for (const auto& [memory, piece] : spare_)
    if (!piece.exported) all = all + Bytes{piece.bytes};
  return all;
}

GpuLocation DeviceHeap::locate(const std::byte* address, bool exports) {
  GpuLocation location{.address = reinterpret_cast<std::uint64_t>(address)};
  if (!exports) return location;
  const std::lock_guard lock(mutex_);
  const auto after = used_.upper_bound(address);
  const auto piece = after == used_.begin() ? used_.end() : std::prev(after);
  if (piece == used_.end() || address > piece->first + piece->second.bytes) {
    usage_error(
        "other processes cannot reach GPU memory that the communicator has not allocated; take buffers from "
        "its allocate()");
  }
  if (!piece->second.exported) {
    check(cudaIpcGetMemHandle(&piece->second.handle, const_cast<std::byte*>(piece->first)),
          "let another process map memory (cudaIpcGetMemHandle)");
    piece->second.exported = true;
  }
  location.allocation = piece->second.number;
  location.offset = static_cast<std::uint64_t>(address - piece->first);
  location.handle = piece->second.handle;
  return location;
}

Bytes DeviceHeap::allocated(const std::byte* address) {
  const std::lock_guard lock(mutex_);
  const auto after = used_.upper_bound(address);
  if (after == used_.begin()) return {};
  const auto& [begin, piece] = *std::prev(after);
  const auto offset = static_cast<std::size_t>(address - begin);
  return {offset < piece.bytes ? piece.bytes - offset : 0};
}

GpuAddress locate(const void* address) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, address), "say where memory is (cudaPointerGetAttributes)");
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) return {};
  return {attributes.device,
          DeviceHeap::of(attributes.device).allocated(static_cast<const std::byte*>(address))};
}

MappedMemory::~MappedMemory() {
  for (const auto& [of, memory] : mapped_) cudaIpcCloseMemHandle(memory);
}

std::byte* MappedMemory::at(Rank rank, const GpuLocation& location) {
  const std::pair key{rank, location.allocation};
  auto found = mapped_.find(key);
  if (found == mapped_.end()) {
    void* memory = nullptr;
    check(cudaIpcOpenMemHandle(&memory, location.handle, cudaIpcMemLazyEnablePeerAccess),
          "map another process's memory (cudaIpcOpenMemHandle)");
    found = mapped_.emplace(key, static_cast<std::byte*>(memory)).first;
  }
  return found->second + location.offset;
}

Memory pinned_memory(Bytes size) {
  void* memory = nullptr;
  const std::size_t bytes = std::max<std::size_t>(1, size.value);
  const cudaError_t result = cudaMallocHost(&memory, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(ExitCode::not_available,
                fmt::format("the host has no {} of memory for copies to the GPU; use smaller sizes",
                            to_text(Bytes{bytes})));
  }
  check(result, "allocate pinned memory (cudaMallocHost)");
  return {static_cast<std::byte*>(memory), [](std::byte* given) { cudaFreeHost(given); }};
}

}  // namespace polyring::cuda
