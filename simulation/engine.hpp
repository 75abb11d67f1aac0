// Engine: runs a workload, event by event.
//
// As in the executor, each actor has `window` streams of each lane in flight, takes the next when one is
// done, and passes through a stream's rounds one after another. A flow begins when both of its ends have come
// to its round (a rendezvous), waits for its latency and for its turn on its connection, and then moves at
// the rate that sharing gives it. When an actor has received all of a round, it reduces; when it has reduced
// and its sends are through, the next round begins.
//
// Where rounds repeat, the whole soon does the same again and again: when a state comes back with nothing but
// repeats counted on, as many such periods as fit are passed over at once.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "simulation/workload.hpp"

namespace polyring {

struct EngineOptions {
  int window = 1;
  bool skip = true;  // whole periods
  // Where to give up:
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t events = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t work = std::numeric_limits<std::uint64_t>::max();  // events, and rates that were computed
};

struct EngineResult {
  double seconds = 0;
  std::uint64_t events = 0;  // that were simulated
};

/// Nothing when it was given up. Throws a usage Error for a window below 1.
std::optional<EngineResult> run(const Workload& workload, const EngineOptions& options);

}  // namespace polyring
