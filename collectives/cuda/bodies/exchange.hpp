// A step among ranks that reach each other's memory, in one kernel on each of them:
//
//   phase 0   copy what peers read and results overwrite to the staging memory
//         1   arrive; the last block to arrive goes on with
//         2   tell all peers: ready
//         3   wait until all peers are ready, and the own copy is whole
//         4   combine
//         5   arrive; the last block to arrive goes on with
//         6   tell all peers: done
//         7   wait until all peers are done, and count the exchange
//
// Without peers only phase 4 does anything: that is a reduction, or a copy, in one rank's memory.
//
// The last block keeps the kernel from ending before the peers are done: what follows in the stream finds all
// results, and may overwrite all operands. All blocks have read the epochs when it writes them.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"
#include "collectives/cuda/bodies/copy.hpp"
#include "collectives/cuda/bodies/wait.hpp"
#include "collectives/cuda/flags.hpp"

namespace polyring {

/// All phases except the work itself.
struct ExchangeSteps {
  using Arguments = ExchangeArguments;
  using State = StepState;

  POLYRING_HD static void stage(const Arguments& arguments, const ThreadPlace& place, State& state) {
    if (place.thread == 0) state = {0, 0};
    if (arguments.staged_bytes == 0) return;
    copy_bytes(arguments.staging, arguments.staged_from, arguments.staged_bytes, place);
  }

  POLYRING_HD static void arrive_staged(const Arguments& arguments, const ThreadPlace& place, State& state) {
    if (place.thread != 0) return;
    const bool last = arguments.staged_bytes == 0
                          ? place.block == 0
                          : flags::arrive_last(arguments.counters->staged, place.blocks);
    state.last = last ? 1 : 0;
  }

  POLYRING_HD static void tell_ready(const Arguments& arguments, const ThreadPlace& place, State& state) {
    if (state.last == 0) return;
    StepCounters& counters = *arguments.counters;
    if (place.thread == 0 && arguments.staged_bytes != 0) {
      flags::signal(counters.copied, counters.copies + 1);
    }
    for_peers(arguments.peer_count, place,
              [&](int p) { flags::signal(arguments.theirs[p]->ready, epoch(arguments, p)); });
  }

  template <typename Pause>
  POLYRING_HD static void wait_ready(const Arguments& arguments, const ThreadPlace& place, State& state,
                                     const Pause& pause) {
    StepCounters& counters = *arguments.counters;
    for_peers(arguments.peer_count, place, [&](int p) {
      wait_for(arguments.own[arguments.places[p]].ready, epoch(arguments, p), arguments.watch, counters,
               arguments.places[p], kMissedReady, state, pause);
    });
    if (place.thread == 0 && arguments.staged_bytes != 0) {
      wait_for(counters.copied, counters.copies + 1, arguments.watch, counters, arguments.own_place,
               kMissedReady, state, pause);
    }
  }

  POLYRING_HD static void tell_done(const Arguments& arguments, const ThreadPlace& place, State& state) {
    if (state.last == 0) return;
    for_peers(arguments.peer_count, place,
              [&](int p) { flags::signal(arguments.theirs[p]->done, epoch(arguments, p)); });
  }

  template <typename Pause>
  POLYRING_HD static void wait_done(const Arguments& arguments, const ThreadPlace& place, State& state,
                                    const Pause& pause) {
    if (state.last == 0) return;
    for_peers(arguments.peer_count, place, [&](int p) {
      wait_for(arguments.own[arguments.places[p]].done, epoch(arguments, p), arguments.watch,
               *arguments.counters, arguments.places[p], kMissedDone, state, pause);
      ++arguments.epochs[arguments.places[p]];
    });
    if (place.thread == 0 && arguments.staged_bytes != 0) ++arguments.counters->copies;
  }

 private:
  /// Of this exchange with a peer.
  POLYRING_HD static std::uint32_t epoch(const Arguments& arguments, int p) {
    return arguments.epochs[arguments.places[p]] + 1;
  }
};

template <typename Work>
struct ExchangeBody {
  using Arguments = ExchangeArguments;
  using State = StepState;
  static constexpr int kPhases = 8;

  template <int kPhase, typename Pause>
  POLYRING_HD static void run(const Arguments& arguments, const ThreadPlace& place, State& state,
                              const Pause& pause) {
    if constexpr (kPhase == 0) ExchangeSteps::stage(arguments, place, state);
    if constexpr (kPhase != 0 && kPhase != 4) {
      if (arguments.peer_count == 0) return;
    }
    if constexpr (kPhase == 1) ExchangeSteps::arrive_staged(arguments, place, state);
    if constexpr (kPhase == 2) ExchangeSteps::tell_ready(arguments, place, state);
    if constexpr (kPhase == 3) ExchangeSteps::wait_ready(arguments, place, state, pause);
    if constexpr (kPhase == 4) {
      if (state.aborted == 0) Work::run(arguments.reduce, place);
    }
    if constexpr (kPhase == 5) arrive_finished(*arguments.counters, place, state);
    if constexpr (kPhase == 6) ExchangeSteps::tell_done(arguments, place, state);
    if constexpr (kPhase == 7) ExchangeSteps::wait_done(arguments, place, state, pause);
  }
};

}  // namespace polyring
