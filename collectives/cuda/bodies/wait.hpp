// How threads of a kernel wait for other ranks.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"
#include "collectives/cuda/flags.hpp"

namespace polyring {

/// Turns of waiting from one look at the abort word to the next: it is in the host's memory, far away.
inline constexpr std::uint32_t kTurnsPerLook = 64;

struct StepState {
  std::uint32_t aborted;  // not 0: one of the block's threads found the abort word set
  std::uint32_t last;     // not 0: this block was the last to arrive
};

/// Until the word comes to the epoch. Where the kernel is aborted, notes what was missed of the rank with
/// this place.
template <typename Pause>
POLYRING_HD inline void wait_for(std::uint32_t& word, std::uint32_t epoch, const KernelWatch& watch,
                                 StepCounters& counters, int place, std::uint32_t missed, StepState& state,
                                 const Pause& pause) {
  for (std::uint32_t turn = 1; !flags::has_come(word, epoch); ++turn) {
    if (turn % kTurnsPerLook == 0 && flags::read(*watch.abort) != 0) {
      if (flags::claim(counters.unfinished, watch.number)) flags::write(watch.status[place], missed);
      flags::write(state.aborted, 1);
      return;
    }
    pause();
  }
}

/// Whether this block is the last that has done its part. Without blocks that were aborted, none is.
POLYRING_HD inline void arrive_finished(StepCounters& counters, const ThreadPlace& place, StepState& state) {
  if (place.thread != 0) return;
  const bool last = state.aborted == 0 && flags::arrive_last(counters.finished, place.blocks);
  state.last = last ? 1 : 0;
}

/// This thread's of `count` peers.
template <typename Action>
POLYRING_HD inline void for_peers(int count, const ThreadPlace& place, const Action& action) {
  for (auto p = static_cast<int>(place.thread); p < count; p += static_cast<int>(place.threads)) action(p);
}

}  // namespace polyring
