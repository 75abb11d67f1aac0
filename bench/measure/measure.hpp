// The measuring loop: contenders take turns, a sample is one iteration's maximum over the ranks.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/contenders/contenders.hpp"
#include "bench/measure/host_piece.hpp"
#include "bench/measure/payload.hpp"
#include "bench/measure/stragglers.hpp"
#include "bench/session/watchdog.hpp"
#include "collectives/runtime/mpi/world.hpp"

namespace polyring {

struct MeasureOptions {
  int iterations = 0;  // 0: chosen by rank 0, so that a contender takes about `time`; `fewest` to 1000
  int warmup = 5;      // at least one where the iterations are chosen by it
  bool check = true;
  Seconds time{0.5};
  int fewest = 10;
  /// Up to this size run each contender once untimed before each timing. Otherwise its few microseconds
  /// mostly show caches that the contenders before it have filled, unless its library is the barrier's as
  /// well.
  Bytes rehearsed{64 << 10};
  Collective collective = Collective::allreduce;
  using Now = std::chrono::steady_clock::time_point (*)();
  Now now = &std::chrono::steady_clock::now;  // tests have another one
};

struct Samples {
  std::vector<double> microseconds;  // the maximum over the ranks, on every rank
  std::optional<Count> wrong;        // of all ranks, of the result before the timing began; see Match
  std::vector<Straggler> stragglers;
};

/// What measure() holds beside the contenders and their buffers.
struct MeasureMemory {
  /// For payloads of up to `count` elements, of the longer buffer.
  MeasureMemory(Transport& transport, ElementKind kind, Count count,
                Collective collective = Collective::allreduce)
      : fresh(transport.host(bytes_of(input_count(collective, transport.size(), count), kind))),
        stale(transport, kind, count),
        result(transport, kind, count) {}

  Memory fresh;      // this rank's input
  HostPiece stale;   // what no output may be taken for
  HostPiece result;  // to be checked
};

/// Times the contenders on `count` elements (of the longer of a rank's two buffers), in rounds of all of
/// them, each in another order. In place, the shorter buffer is the rank's block of the longer. Collective.
/// With options.check each result is compared with the payload's before anything is timed; a contender that
/// is wrong is not timed, nor in place one that cannot be done so. Before each iteration every rank writes
/// its input and its output anew, untimed, the input last, as a backward pass does: no contender finds caches
/// as another has left them, and values do not grow in place.
std::vector<Samples> measure(std::span<Contender> contenders, const MpiWorld& world, Transport& transport,
                             const Payload& payload, Count count, ElementKind kind, bool in_place,
                             const MeasureOptions& options, Watchdog& watchdog);

}  // namespace polyring
