// Pieces: how memory that is in no segment goes through a few shared blocks, which stay in the caches.
//
//   its owner                          a block                       its partner
//   what it gives, piece j  ─ fills ─► j mod kBlocks  ─ reads ──►    combines
//   what it takes, piece j  ◄─ lands ─ the same block ◄─ writes ─
//
// Each byte comes from main memory once and goes there once, as if the partner had reached it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/runtime/kernels.hpp"
#include "collectives/runtime/shared/control_block.hpp"

namespace polyring {

/// In shared memory, for one owner and one partner, from the first piece to the last.
struct PieceBlocks {
  static constexpr std::uint32_t kBlocks = 4;

  alignas(kLine) std::atomic<std::uint32_t> filled{0};   // pieces that the partner may go on with
  alignas(kLine) std::atomic<std::uint32_t> emptied{0};  // of those, how many it is done with
  // the blocks follow

  static std::size_t bytes(std::size_t piece) { return sizeof(PieceBlocks) + kBlocks * piece; }
  std::byte* block(std::uint32_t number, std::size_t piece) {
    return reinterpret_cast<std::byte*>(this + 1) + number % kBlocks * piece;
  }
};

/// The bytes of a piece: of what is given, and of what is taken, which may be a result of smaller elements.
struct PieceSizes {
  std::size_t gives = 0;
  std::size_t takes = 0;
};

/// The owner's side. One of the two spans may be empty, else both are as many pieces.
class PieceOwner {
 public:
  PieceOwner(PieceBlocks& blocks, PieceSizes sizes, std::span<const std::byte> gives,
             std::span<std::byte> takes, Stores lands);

  /// Fills a block and lands another, without waiting for either; false when neither was possible.
  bool advance();
  bool done() const { return landed_ == count_; }

 private:
  PieceBlocks* blocks_;
  PieceSizes sizes_;
  std::span<const std::byte> gives_;
  std::span<std::byte> takes_;
  Stores lands_;
  std::uint32_t count_;
  std::uint32_t filled_ = 0;
  std::uint32_t landed_ = 0;
};

}  // namespace polyring
