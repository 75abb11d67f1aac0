// OfferedBuffers: where partners find what they are given, and where they write what they take.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/runtime/shared/memory.hpp"
#include "collectives/runtime/shared/operation.hpp"
#include "collectives/runtime/shared/options.hpp"

namespace polyring {

/// Up to here what is given is copied: its owner need not wait until others have read it. In an exchange all
/// wait for each other anyhow, so that copies pay for less. Measured; see docs/performance.md.
inline constexpr std::size_t kEagerMessage = 4096;
inline constexpr std::size_t kEagerExchange = 1024;

class OfferedBuffers {
 public:
  /// Keeps the memory.
  OfferedBuffers(SharedMemory& memory, SharedOptions options) : memory_(memory), options_(options) {}

  /// Where a partner finds data; in no segment, they go to it in pieces.
  struct Given {
    std::span<const std::byte> data;
    Location location;
    std::span<const std::byte> pieces_of{};
  };
  Given give(SharedOperation& operation, std::span<const std::byte> data) const;
  Location take(SharedOperation& operation, std::span<std::byte> data) const;
  bool gives_pieces(const Exchange& exchange, std::size_t partner) const;
  bool takes_pieces(const Exchange& exchange, std::size_t partner) const;
  Location own_pieces(SharedOperation& operation, std::span<const std::byte> gives,
                      std::span<std::byte> takes) const;

 private:
  SharedMemory& memory_;
  SharedOptions options_;
};

}  // namespace polyring
