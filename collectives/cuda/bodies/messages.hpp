// Messages of one round among ranks that reach each other's memory, in one kernel on each of them. A round
// may also have several kernels on a rank: the first begins it, and the last ends it.
//
//   phase 0   the first kernel tells its senders: ready
//         1   wait until all receivers are ready
//         2   copy all messages to their memory
//         3   arrive; in the last kernel the last block to arrive goes on with
//         4   tell the receivers: done
//         5   wait until all senders are done, and count the round
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"
#include "collectives/cuda/bodies/copy.hpp"
#include "collectives/cuda/bodies/wait.hpp"
#include "collectives/cuda/flags.hpp"

namespace polyring {

struct MessageBody {
  using Arguments = MessageArguments;
  using State = StepState;
  static constexpr int kPhases = 6;

  template <int kPhase, typename Pause>
  POLYRING_HD static void run(const Arguments& arguments, const ThreadPlace& place, State& state,
                              const Pause& pause) {
    if constexpr (kPhase == 0) tell_ready(arguments, place, state);
    if constexpr (kPhase == 1) wait_ready(arguments, place, state, pause);
    if constexpr (kPhase == 2) copy(arguments, place, state);
    if constexpr (kPhase == 3) arrive_finished(*arguments.counters, place, state);
    if constexpr (kPhase == 4) tell_done(arguments, place, state);
    if constexpr (kPhase == 5) wait_done(arguments, place, state, pause);
  }

 private:
  POLYRING_HD static void tell_ready(const Arguments& arguments, const ThreadPlace& place, State& state) {
    if (place.thread == 0) state = {0, 0};
    if (!arguments.begins || place.block != 0) return;
    for_peers(arguments.sender_count, place, [&](int s) {
      flags::signal(arguments.senders[s]->ready, arguments.received[arguments.sender_places[s]] + 1);
    });
  }

  template <typename Pause>
  POLYRING_HD static void wait_ready(const Arguments& arguments, const ThreadPlace& place, State& state,
                                     const Pause& pause) {
    for_peers(arguments.receiver_count, place, [&](int r) {
      const int at = arguments.receiver_places[r];
      wait_for(arguments.own[at].ready, arguments.sent[at] + 1, arguments.watch, *arguments.counters, at,
               kMissedReady, state, pause);
    });
  }

  POLYRING_HD static void copy(const Arguments& arguments, const ThreadPlace& place, const State& state) {
    if (state.aborted != 0) return;
    for (int m = 0; m < arguments.copy_count; ++m) {
      const MessageCopy& message = arguments.copies[m];
      copy_bytes(message.to, message.from, message.bytes, place);
    }
  }

  POLYRING_HD static void tell_done(const Arguments& arguments, const ThreadPlace& place,
                                    const State& state) {
    if (!arguments.ends || state.last == 0) return;
    for_peers(arguments.receiver_count, place, [&](int r) {
      const int at = arguments.receiver_places[r];
      flags::signal(arguments.receivers[r]->done, ++arguments.sent[at]);
    });
  }

  template <typename Pause>
  POLYRING_HD static void wait_done(const Arguments& arguments, const ThreadPlace& place, State& state,
                                    const Pause& pause) {
    if (!arguments.ends || state.last == 0) return;
    for_peers(arguments.sender_count, place, [&](int s) {
      const int at = arguments.sender_places[s];
      wait_for(arguments.own[at].done, arguments.received[at] + 1, arguments.watch, *arguments.counters, at,
               kMissedDone, state, pause);
      ++arguments.received[at];
    });
  }
};

}  // namespace polyring
