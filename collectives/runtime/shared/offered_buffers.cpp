#include "collectives/runtime/shared/offered_buffers.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace polyring {

/// What is in no segment and too long to be copied at once. What several are given is copied once for all of
/// them, and what this rank overwrites meanwhile, before it does.
bool OfferedBuffers::gives_pieces(const Exchange& exchange, std::size_t partner) const {
  const std::span<const std::byte> data = exchange.partners[partner].gives;
  if (data.size() <= options_.piece.value || exchange.overwrites(data)) return false;
  for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
    if (i != partner && exchange.partners[i].gives.data() == data.data()) return false;
  }
  return memory_.locate(data.data(), data.size()).generation == 0;
}

bool OfferedBuffers::takes_pieces(const Exchange& exchange, std::size_t partner) const {
  const std::span<std::byte> data = exchange.partners[partner].takes;
  return data.size() > options_.piece.value && memory_.locate(data.data(), data.size()).generation == 0;
}

Location OfferedBuffers::own_pieces(SharedOperation& operation, std::span<const std::byte> gives,
                                    std::span<std::byte> takes) const {
  const std::size_t bytes = PieceBlocks::bytes(options_.piece.value);
  std::byte* block = memory_.take_block(bytes);
  operation.blocks.push_back(block);
  operation.waits = true;
  // In place, what is written has just been read into the caches.
  const bool streaming = operation.exchange.payload >= options_.streaming && gives.data() != takes.data();
  const std::size_t piece = options_.piece.value;
  const PieceSizes sizes{piece, operation.exchange.result_bytes(piece)};
  assert((takes.empty() || sizes.takes <= piece) && "blocks are as large as the operands' pieces");
  operation.owned.emplace_back(*new (block) PieceBlocks, sizes, gives, takes,
                               streaming ? Stores::streaming : Stores::cached);
  return memory_.locate(block, bytes);
}

/// What is small is copied, so that its owner can go on, and so is what this rank overwrites meanwhile.
OfferedBuffers::Given OfferedBuffers::give(SharedOperation& operation,
                                           std::span<const std::byte> data) const {
  const Exchange& exchange = operation.exchange;
  const std::size_t eager = operation.kind == OfferKind::message ? kEagerMessage : kEagerExchange;
  if (data.size() > eager && !exchange.overwrites(data)) {
    const Location location = memory_.locate(data.data(), data.size());
    operation.waits = operation.waits || location.generation != 0;
    if (location.generation != 0) return {data, location};
  }
  const bool fits_pieces = data.size() > options_.piece.value;
  std::byte* block = fits_pieces ? memory_.try_block(data.size()) : memory_.take_block(data.size());
  if (block == nullptr) {
    if (!exchange.overwrites(data)) return {data, {}, data};
    return {data, {}, operation.copies.emplace_back(data.begin(), data.end())};
  }
  std::memcpy(block, data.data(), data.size());
  operation.blocks.push_back(block);
  operation.block_bytes += data.size();
  return {data, memory_.locate(block, data.size())};
}

Location OfferedBuffers::take(SharedOperation& operation, std::span<std::byte> data) const {
  operation.waits = true;
  const Location location = memory_.locate(data.data(), data.size());
  if (location.generation != 0) return location;
  std::byte* block = memory_.take_block(data.size());
  operation.blocks.push_back(block);
  operation.landings.push_back({block, data});
  return memory_.locate(block, data.size());
}

}  // namespace polyring
