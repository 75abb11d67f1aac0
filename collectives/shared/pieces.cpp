#include "collectives/shared/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace polyring {

PieceOwner::PieceOwner(PieceBlocks& blocks, std::size_t piece, std::span<const std::byte> gives,
                       std::span<std::byte> takes, Stores lands)
    : blocks_(&blocks),
      piece_(piece),
      gives_(gives),
      takes_(takes),
      lands_(lands),
      count_(static_cast<std::uint32_t>((std::max(gives.size(), takes.size()) + piece - 1) / piece)) {}

std::size_t PieceOwner::length(std::uint32_t number) const {
  return std::min(piece_, std::max(gives_.size(), takes_.size()) - number * piece_);
}

bool PieceOwner::advance() {
  bool any = false;
  if (landed_ < filled_ && landed_ < blocks_->emptied.load(std::memory_order_acquire)) {
    if (!takes_.empty()) {
      copy_on_host(takes_.data() + landed_ * piece_, blocks_->block(landed_, piece_), length(landed_),
                   lands_);
    }
    ++landed_;
    any = true;
  }
  if (filled_ < count_ && filled_ < landed_ + PieceBlocks::kBlocks) {
    if (!gives_.empty()) {
      std::memcpy(blocks_->block(filled_, piece_), gives_.data() + filled_ * piece_, length(filled_));
    }
    blocks_->filled.store(++filled_, std::memory_order_release);
    any = true;
  }
  return any;
}

}  // namespace polyring
