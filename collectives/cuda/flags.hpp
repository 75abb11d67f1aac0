// The words that blocks and ranks tell each other of their progress by, and all atomic access to memory.
#pragma once

#include <cstdint>

#include "collectives/runtime/host_device.hpp"

#if defined(__CUDACC__)
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace polyring::flags {

#if defined(__CUDACC__)
template <typename T>
using SystemWord = ::cuda::atomic_ref<T, ::cuda::thread_scope_system>;
template <typename T>
using DeviceWord = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;
inline constexpr auto kRelaxed = ::cuda::memory_order_relaxed;
inline constexpr auto kAcquire = ::cuda::memory_order_acquire;
inline constexpr auto kRelease = ::cuda::memory_order_release;
inline constexpr auto kBoth = ::cuda::memory_order_acq_rel;
#else
template <typename T>
using SystemWord = std::atomic_ref<T>;
template <typename T>
using DeviceWord = std::atomic_ref<T>;
inline constexpr auto kRelaxed = std::memory_order_relaxed;
inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;
inline constexpr auto kBoth = std::memory_order_acq_rel;
#endif

/// All that happened before is seen by whoever sees this epoch.
POLYRING_HD inline void signal(std::uint32_t& word, std::uint32_t epoch) {
  SystemWord<std::uint32_t>(word).store(epoch, kRelease);
}

/// Whether the word has come to this epoch, or to a later one; epochs wrap around.
POLYRING_HD inline bool has_come(std::uint32_t& word, std::uint32_t epoch) {
  return static_cast<std::int32_t>(SystemWord<std::uint32_t>(word).load(kAcquire) - epoch) >= 0;
}

/// Whether this block is the last of so many to arrive; it then sees what the others did before, and the
/// counter is 0 again.
POLYRING_HD inline bool arrive_last(std::uint32_t& counter, std::uint32_t blocks) {
  if (blocks == 1) return true;
  const DeviceWord<std::uint32_t> word(counter);
  if (word.fetch_add(1, kBoth) + 1 != blocks) return false;
  word.store(0, kRelaxed);
  return true;
}

/// Whether the word is this number now, as it was before or because it was 0.
POLYRING_HD inline bool claim(std::uint32_t& word, std::uint32_t number) {
  std::uint32_t found = 0;
  return DeviceWord<std::uint32_t>(word).compare_exchange_strong(found, number, kRelaxed) || found == number;
}

/// Words that order nothing else.
POLYRING_HD inline std::uint32_t read(std::uint32_t& word) {
  return SystemWord<std::uint32_t>(word).load(kRelaxed);
}
POLYRING_HD inline void write(std::uint32_t& word, std::uint32_t value) {
  SystemWord<std::uint32_t>(word).store(value, kRelaxed);
}

POLYRING_HD inline void add(std::uint64_t* counter, std::uint64_t value) {
  DeviceWord<std::uint64_t>(*counter).fetch_add(value, kRelaxed);
}

}  // namespace polyring::flags
