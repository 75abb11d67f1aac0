#include "collectives/runtime/shared/slots.hpp"

#include <new>

#include "base/error.hpp"

namespace polyring {

Slots::Slots(std::span<ControlBlock* const> controls, std::size_t own, SharedMemory& memory)
    : controls_(controls), own_(own), memory_(memory) {
  add();
}

/// Never waits: the others may be starting operations themselves, and finish nothing meanwhile.
std::uint32_t Slots::take() {
  if (free_.empty()) add();
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  mark(own_, slot).store(0, std::memory_order_relaxed);
  return slot;
}

void Slots::add() {
  if (blocks_ == kMostOfferBlocks) {
    throw Error(ExitCode::not_available,
                "there are too many messages in flight at once; use larger chunks or fewer lanes");
  }
  if (blocks_ > 0) {
    auto* block = new (memory_.take_block(sizeof(FinishedBlock))) FinishedBlock;
    controls_[own_]->more_finished[blocks_] =
        memory_.locate(reinterpret_cast<std::byte*>(block), sizeof *block);
  }
  const auto first = static_cast<std::uint32_t>(blocks_++ * kOffersInBlock);
  for (std::uint32_t i = kOffersInBlock; i > 0; --i) free_.push_back(first + i - 1);
}

std::atomic<std::uint32_t>& Slots::mark(std::size_t rank, std::uint32_t slot) const {
  ControlBlock& control = *controls_[rank];
  if (slot < kOffersInBlock) return control.finished[slot];
  std::byte* block = memory_.at(rank, control.more_finished[slot / kOffersInBlock]);
  return (*reinterpret_cast<FinishedBlock*>(block))[slot % kOffersInBlock];
}

}  // namespace polyring
