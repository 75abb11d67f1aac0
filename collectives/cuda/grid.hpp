// The shape of a grid.
#pragma once

#include <cstdint>

namespace polyring {

/// Threads of a block, in all kernels.
inline constexpr int kBlockThreads = 512;

/// Blocks of a kernel that waits for nobody, for each multiprocessor: enough to have its memory busy.
inline constexpr int kBusyBlocks = 8;

/// Bytes of each buffer that a thread has to do before another block is worth its start.
inline constexpr int kThreadBytes = 64;

/// Blocks for buffers of so many bytes: one to `max_blocks`.
constexpr int blocks_for(std::int64_t bytes, int max_blocks) {
  constexpr std::int64_t kBlockBytes = std::int64_t{kBlockThreads} * kThreadBytes;
  const std::int64_t wanted = (bytes + kBlockBytes - 1) / kBlockBytes;
  if (wanted < 1 || max_blocks < 1) return 1;
  return wanted < max_blocks ? static_cast<int>(wanted) : max_blocks;
}

}  // namespace polyring
