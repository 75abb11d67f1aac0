// StaticOrder: the one order in which a rank issues the steps of all its chunks. All ranks agree on it
// without asking each other. It is for messages without tags, which match in the order of their issue (NCCL's
// send and receive), and for CUDA streams, which run what they are given in order.
//
// Time is counted in rounds, the same on all ranks. At most `window` chunks of a lane are in flight, each
// with the memory of a slot. Even and odd chunks take alternate rounds, so that what a chunk received in one
// round is combined while the next round moves the messages of its neighbours. Chunks of three steps, with a
// window of 2:
//
//     round     0   1   2   3   4   5   6   7   8   9   10  11
//     chunk 0   s0      s1      s2                              slot 0
//     chunk 1       s0      s1      s2                          slot 1
//     chunk 2                           s0      s1      s2      slot 0
//     chunk 3                               s0      s1      s2  slot 1
//
// With a window of 4, chunks 2 and 3 begin in rounds 2 and 3, and chunks 4 and 5 in rounds 6 and 7. A step's
// place in its chunk is Program::Step::round, which also counts steps that other ranks alone take part in.
//
// What a runner does in a round, in this order:
//
//     1  for each entry without an exchange: its conversions and copies
//     2  all sends and receives of the round, entry by entry, as one group (ncclGroupStart, ncclGroupEnd)
//     3  for each entry with an exchange: its conversions and copies, and then the exchange
//     4  for each entry without an exchange: its folds
//
// It may use several CUDA streams, so that these overlap, if it keeps four rules:
//
// - Each entry begins when the entry that it names as `after` has ended: the one before it in the same slot.
// - Within an entry, messages begin when its conversions and copies have ended, and folds when its messages
//   have. A group ends as a whole.
// - Groups begin in the order of rounds. Exchanges begin in the order of the list.
// - In each CUDA stream, things stand in the order of the list above, round by round.
//
// Then nothing waits for something that comes later in this order, on any rank, and no ranks can wait for
// each other in a circle. (Kernels that wait must also find room beside each other on a GPU: that is the
// runner's task.) The entries of one round use different memory. Only several exchanges of one chunk share
// memory; each names the one before it as `after`. So folds of a round may run beside the group and the
// exchanges of the same round and of later ones, as far as no entry in there names theirs as `after`.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "collectives/schedule/program.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

struct StaticOrder {
  /// A chunk of a lane, and what this rank does for it.
  struct Work {
    Stream stream;
    Slice slice;              // its elements, as the schedule numbers them
    std::size_t program = 0;  // of `programs`
    std::size_t slot = 0;     // of `slots`
  };
  /// Memory for one work at a time, in elements.
  struct Slot {
    Count staging = 0;   // of the partial results' kind
    Count partials = 0;  // the same
    Count work = 0;      // of the payload's kind
    bool operator==(const Slot&) const = default;
  };
  /// A step of a work.
  struct Entry {
    static constexpr std::size_t kNone = ~std::size_t{0};
    int round = 0;
    std::size_t work = 0;       // of `works`
    std::size_t step = 0;       // of its program
    std::size_t after = kNone;  // of `entries`, an earlier one
    bool operator==(const Entry&) const = default;
  };

  Collective collective = Collective::allreduce;
  std::vector<Program> programs;
  std::vector<Work> works;  // the same on all ranks, except for their programs
  std::vector<Slot> slots;  // as many on all ranks
  std::vector<Entry> entries;

  const Program& program(const Entry& entry) const { return programs[works[entry.work].program]; }
  const Program::Step& step(const Entry& entry) const { return program(entry).steps[entry.step]; }
  /// The entries from `first` on that are of its round; none behind the last.
  std::span<const Entry> round_from(std::size_t first) const;
  /// Has each entry name the one before it in its slot.
  void link();
};

struct OrderOptions {
  int window = kDefaultWindow;  // chunks of a lane in flight
  /// Where the window is even, and a lane has several chunks: even and odd chunks take alternate rounds.
  /// Otherwise there are half as many rounds, and groups twice as large, but each chunk in flight needs the
  /// folds of the round before.
  bool alternate = true;
};

/// The rank's order of a schedule, with programs as compile() makes them. All ranks must give the same
/// schedule, partial results and options. Throws a usage Error as compile() does, and for a window below 1.
StaticOrder order_of(const Schedule& schedule, Rank rank, const std::function<bool(Rank)>& reaches,
                     Partials partials, OrderOptions options = {});

/// Of all ranks; `reach` says of any two whether they reach each other's memory, and empty: none do.
std::vector<StaticOrder> order_all(const Schedule& schedule, const std::function<bool(Rank, Rank)>& reach,
                                   Partials partials, OrderOptions options = {});

}  // namespace polyring
