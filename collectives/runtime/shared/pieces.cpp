#include "collectives/runtime/shared/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace polyring {

namespace {

std::uint32_t pieces_of(std::size_t bytes, std::size_t piece) {
  return static_cast<std::uint32_t>((bytes + piece - 1) / piece);
}

}  // namespace

PieceOwner::PieceOwner(PieceBlocks& blocks, PieceSizes sizes, std::span<const std::byte> gives,
                       std::span<std::byte> takes, Stores lands)
    : blocks_(&blocks),
      sizes_(sizes),
      gives_(gives),
      takes_(takes),
      lands_(lands),
      count_(std::max(pieces_of(gives.size(), sizes.gives), pieces_of(takes.size(), sizes.takes))) {}

bool PieceOwner::advance() {
  bool any = false;
  if (landed_ < filled_ && landed_ < blocks_->emptied.load(std::memory_order_acquire)) {
    if (!takes_.empty()) {
      const std::size_t offset = landed_ * sizes_.takes;
      copy_on_host(takes_.data() + offset, blocks_->block(landed_, sizes_.gives),
                   std::min(sizes_.takes, takes_.size() - offset), lands_);
    }
    ++landed_;
    any = true;
  }
  if (filled_ < count_ && filled_ < landed_ + PieceBlocks::kBlocks) {
    if (!gives_.empty()) {
      const std::size_t offset = filled_ * sizes_.gives;
      std::memcpy(blocks_->block(filled_, sizes_.gives), gives_.data() + offset,
                  std::min(sizes_.gives, gives_.size() - offset));
    }
    blocks_->filled.store(++filled_, std::memory_order_release);
    any = true;
  }
  return any;
}

}  // namespace polyring
