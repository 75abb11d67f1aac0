// The measuring loop: contenders take turns, each with one call, or with a block of them.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "bench/contenders/contenders.hpp"
#include "bench/measure/host_piece.hpp"
#include "bench/measure/job.hpp"
#include "bench/measure/payload.hpp"
#include "bench/measure/stragglers.hpp"
#include "collectives/runtime/communicator.hpp"
#include "reports/result.hpp"

namespace polyring {

/// When enough has been measured of each contender.
struct StoppingRule {
  int iterations = 0;  // 0: as many as take about `time`, but from `fewest` to kMost
  int warmup = 5;      // before them; at least one where their number is chosen
  Seconds time{0.5};
  int fewest = 10;
  bool of_calls = true;  // `time` is that of the calls alone; otherwise with filling buffers and barriers
  static constexpr int kMost = 1000;

  /// The number of iterations depends on how long they take.
  bool chooses() const { return iterations == 0; }
  int warmups() const { return chooses() ? std::max(1, warmup) : warmup; }
  /// The number of iterations, where one of the slowest contender takes so many microseconds.
  int iterations_of(double slowest_us) const { return iterations_in(time, fewest, slowest_us); }
  /// The same for each of kBlocks blocks.
  int calls_of_block(double slowest_us) const {
    return iterations_in({time.value / kBlocks}, kFewestInBlock, slowest_us);
  }
  static constexpr int kBlocks = 10;
  static constexpr int kFewestInBlock = 5;

 private:
  int iterations_in(Seconds available, int least, double slowest_us) const;
};

struct MeasureOptions {
  StoppingRule stop;
  bool check = true;
  TimingMethod timing = TimingMethod::isolated;
  int graphs = 0;  // launches of each CUDA graph, which TimingMethod::graph makes of a block's calls
  /// Up to this size run each contender once untimed before each timing. Otherwise its few microseconds
  /// mostly show caches that the contenders before it have filled, unless its library is the barrier's as
  /// well.
  Bytes rehearsed{64 << 10};
};

/// What is measured: all contenders do the same.
struct MeasuredCall {
  const Payload& payload;  // of its ranks, kind and operation
  CollectiveOf what;
  bool in_place = false;  // the shorter buffer is the rank's block of the longer

  Bytes size() const { return bytes_of(what.count, what.kind); }
};

struct Samples {
  std::vector<double> microseconds;   // see TimingMethod; the same on every rank
  std::optional<Count> wrong;         // of all ranks, of the result before the timing began; see Match
  std::vector<Straggler> stragglers;  // of isolated calls
};

/// What measure() holds beside the contenders and their buffers.
struct MeasureMemory {
  /// For payloads of up to what.count elements.
  MeasureMemory(Transport& transport, const CollectiveOf& what)
      : fresh(
            transport.host(bytes_of(input_count(what.collective, transport.size(), what.count), what.kind))),
        stale(transport, what.kind, what.count),
        result(transport, what.kind, what.count) {}

  Memory fresh;      // this rank's input
  HostPiece stale;   // what no output may be taken for
  HostPiece result;  // to be checked
};

/// Times the contenders in rounds of all of them, each in another order. Collective. Rank 0 chooses the
/// number of iterations for all, since clocks differ. With options.check each result is compared with the
/// payload's before anything is timed; a contender that is wrong is not timed, nor in place one that cannot
/// be done so.
///
/// Isolated: before each iteration every rank writes its input and its output anew, untimed, the input last,
/// as a backward pass does: no contender finds caches as another has left them, and values do not grow in
/// place. Else a contender's turn is a block of calls, after as many calls as stop.warmups(); there are
/// StoppingRule::kBlocks blocks of each, of stop.iterations calls where these are given. Input and output are
/// written anew before each block. With options.graphs, throws AgreedError(ExitCode::not_available) where a
/// contender's calls cannot be a graph.
std::vector<Samples> measure(std::span<Contender> contenders, const Job& job, const MeasuredCall& call,
                             const MeasureOptions& options);

}  // namespace polyring
