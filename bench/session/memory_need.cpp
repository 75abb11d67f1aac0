#include "bench/session/memory_need.hpp"

#include <algorithm>
#include <bit>

#include "collectives/runtime/shared/control_block.hpp"
#include "collectives/runtime/shared/memory.hpp"
#include "collectives/runtime/shared/options.hpp"
#include "collectives/runtime/shared/pieces.hpp"

namespace polyring {
namespace {

std::uint64_t address_of(std::span<const std::byte> data) {
  return reinterpret_cast<std::uintptr_t>(data.data());
}

}  // namespace

MemoryCount::MemoryCount(const Transport& model) : model_(model) {
  for (Rank peer = 0; peer < model.size(); ++peer) others_ += model.reaches(peer) ? 1 : 0;
}

Memory MemoryCount::allocate(Bytes size) {
  if (on_device()) return take(size, Where::gpu);
  return take(size, others_ > 0 ? Where::shared : Where::own);
}

Memory MemoryCount::scratch(Bytes size) { return take(size, on_device() ? Where::gpu : Where::own); }

std::uint64_t& MemoryCount::Held::in(Where where) {
  return where == Where::gpu ? gpu : where == Where::shared ? shared : own;
}

void MemoryCount::Held::add(std::uint64_t bytes, Where where) {
  in(where) += bytes;
  most = std::max(most, own + shared);
  most_shared = std::max(most_shared, shared);
  most_gpu = std::max(most_gpu, gpu);
}

Memory MemoryCount::take(Bytes size, Where where) {
  const std::uint64_t bytes = (std::max<std::uint64_t>(1, size.value) + kPage - 1) / kPage * kPage;
  const std::uint64_t address = next_address_;
  next_address_ += bytes + kPage;
  held_->add(bytes, where);
  if (where == Where::shared) held_->reached[address] = bytes;
  return {reinterpret_cast<std::byte*>(address),  // NOLINT(performance-no-int-to-ptr): nobody looks there
          [held = held_, address, bytes, where](std::byte*) {
            held->in(where) -= bytes;
            held->reached.erase(address);
          }};
}

MemoryNeed MemoryCount::need(std::uint64_t all, std::uint64_t shared, std::uint64_t gpu) const {
  return {{all}, {}, {all + others_ * shared}, {gpu}};
}

bool MemoryCount::is_reached(std::span<const std::byte> data) const {
  const auto after = held_->reached.upper_bound(address_of(data));
  if (after == held_->reached.begin()) return false;
  const auto& [address, bytes] = *std::prev(after);
  return address_of(data) + data.size() <= address + bytes;
}

/// As long as what is copied, or, where that is long, with room for a few pieces of it.
void MemoryCount::take_block(Operation& operation, std::span<const std::byte> data) {
  if (data.size() <= kInline) return;
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(data.size(), kPage));
  operation.blocks.push_back(size);
  std::size_t& free = free_blocks_[size];
  if (free == 0) {
    const std::size_t slab = std::max(size, kSlab);
    held_->add(slab, Where::shared);
    free += slab / size;
  }
  --free;
}

void MemoryCount::send(Rank to, int, std::span<const std::byte> data, Ticket ticket) {
  Operation& operation = operations_.emplace_back(Operation{ticket, {}, {}});
  if (!reaches(to) || is_reached(data) || on_device()) return;
  const std::size_t pieces = PieceBlocks::bytes(SharedOptions{}.piece.value);
  take_block(operation, data.first(std::min(data.size(), pieces)));
}

void MemoryCount::receive(Rank, int, std::span<std::byte>, Ticket ticket) {
  operations_.push_back({ticket, {}, {}});
}

/// Devices keep what is given and written over in a copy for as long as the exchange takes.
void MemoryCount::take_copy(Operation& operation, std::span<const std::byte> data) {
  operation.copies.push_back(take({data.size()}, Where::gpu));
}

void MemoryCount::exchange(const Exchange& exchange, Ticket ticket) {
  Operation& operation = operations_.emplace_back(Operation{ticket, {}, {}});
  const std::size_t pieces = PieceBlocks::bytes(SharedOptions{}.piece.value);
  std::span<const std::byte> before;  // often all are given the same
  for (const Exchange::Partner& partner : exchange.partners) {
    const bool same = partner.gives.data() == before.data() && partner.gives.size() == before.size();
    before = partner.gives;
    if (on_device()) {
      if (!same && exchange.overwrites(partner.gives)) take_copy(operation, partner.gives);
      continue;
    }
    if (!same && exchange.overwrites(partner.gives)) {
      take_block(operation, partner.gives);
    } else if (!same && !is_reached(partner.gives)) {
      take_block(operation, partner.gives.first(std::min(partner.gives.size(), pieces)));
    }
    if (!is_reached(partner.takes))
      take_block(operation, partner.takes.first(std::min(partner.takes.size(), pieces)));
  }
}

void MemoryCount::copy(std::byte*, std::span<const std::byte>, Ticket ticket) {
  operations_.push_back({ticket, {}, {}});
}

void MemoryCount::combine(const Reduction&, std::byte*, std::span<const std::byte* const>, Count,
                          Ticket ticket) {
  operations_.push_back({ticket, {}, {}});
}

bool MemoryCount::poll(std::vector<Ticket>& done) {
  if (operations_.empty()) return false;
  for (const std::size_t block : operations_.front().blocks) ++free_blocks_[block];
  done.push_back(operations_.front().ticket);
  operations_.pop_front();
  return true;
}

}  // namespace polyring
