// Slots: where a rank finds that its offers are finished.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/runtime/shared/control_block.hpp"
#include "collectives/runtime/shared/memory.hpp"

namespace polyring {

/// Offers that nobody has to finish: all that they give is in the entry.
inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

class Slots {
 public:
  /// `controls` are the control blocks of all ranks of the host, `own` is this one's place among them; all
  /// are kept.
  Slots(std::span<ControlBlock* const> controls, std::size_t own, SharedMemory& memory);

  /// For an offer of this rank's, not finished yet. Throws Error(ExitCode::not_available) when all are taken.
  std::uint32_t take();
  void give_back(std::uint32_t slot) {
    if (slot != kNoSlot) free_.push_back(slot);
  }

  bool finished(std::uint32_t slot) const {
    return slot == kNoSlot || mark(own_, slot).load(std::memory_order_acquire) == kFinished;
  }
  /// How far the other has come, in parts; any number once it is finished.
  std::uint32_t progress(std::uint32_t slot) const {
    return slot == kNoSlot ? kFinished : mark(own_, slot).load(std::memory_order_relaxed);
  }
  /// An offer of another's.
  void finish(std::size_t rank, std::uint32_t slot) {
    if (slot != kNoSlot) mark(rank, slot).store(kFinished, std::memory_order_release);
  }
  void note_progress(std::size_t rank, std::uint32_t slot, std::uint32_t parts) {
    if (slot != kNoSlot) mark(rank, slot).store(parts, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kFinished = ~std::uint32_t{0};

  void add();
  std::atomic<std::uint32_t>& mark(std::size_t rank, std::uint32_t slot) const;

  std::span<ControlBlock* const> controls_;
  std::size_t own_;
  SharedMemory& memory_;
  std::size_t blocks_ = 0;
  std::vector<std::uint32_t> free_;
};

}  // namespace polyring
