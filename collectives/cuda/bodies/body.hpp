// What all kernels' bodies have in common. A body is a struct with
//
//   Arguments        the kernel's only parameter
//   State            what the threads of a block share from phase to phase
//   kPhases          how many there are; between two of them all threads of a block wait for each other
//   run<kPhase>()    what one thread does in a phase
//
// No phase waits for what a later one does, or another block in the same phase: so the host runs a kernel
// phase by phase, block by block, thread by thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/runtime/host_device.hpp"

namespace polyring {

/// A thread's place in its grid.
struct ThreadPlace {
  std::uint32_t block;
  std::uint32_t blocks;
  std::uint32_t thread;
  std::uint32_t threads;  // of a block

  POLYRING_HD std::int64_t index() const { return std::int64_t{block} * threads + thread; }
  POLYRING_HD std::int64_t total() const { return std::int64_t{blocks} * threads; }
};

struct NoState {};

inline constexpr std::size_t kVectorBytes = 16;  // of the widest access

/// Some elements side by side, read and written 16 bytes at a time if they are so many.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < kVectorBytes ? sizeof(T) * kWidth : kVectorBytes) Elements {
  T at[kWidth];
};

// Through memcpy, as the bytes may be any type's; compilers make it one access of the type's alignment.
template <typename T>
POLYRING_HD inline T load_aligned(const std::byte* from) {
  T value;
  __builtin_memcpy(&value, __builtin_assume_aligned(from, alignof(T)), sizeof value);
  return value;
}

template <typename T>
POLYRING_HD inline void store_aligned(std::byte* to, const T& value) {
  __builtin_memcpy(__builtin_assume_aligned(to, alignof(T)), &value, sizeof value);
}

/// Bytes from an address to the next vector.
POLYRING_HD inline std::int64_t to_next_vector(const std::byte* address) {
  return static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(address) % kVectorBytes);
}

}  // namespace polyring
