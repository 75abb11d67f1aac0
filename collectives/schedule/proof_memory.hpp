// ProofMemory: the ranks' memory while verify_programs() runs their programs: sets of ranks in place of
// elements, and who used what from when to when.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/program.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/verify_programs.hpp"

namespace polyring {

/// The first fault that is found ends the proof.
struct ProofFault {
  std::string text;
};

template <typename... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw ProofFault{fmt::format(format, std::forward<Arguments>(arguments)...)};
}

/// What a piece of memory holds.
struct Value {
  std::uint64_t ranks = 0;  // whose contribution is in there; none: nothing that is known
  Count origin = 0;         // which of their elements
  Count length = 0;         // elements
  bool partial = false;     // of the partial results' kind
  bool last = false;        // a complete result, divided where it is an average
};

/// How far each rank had come, as far as it is known at one moment of one rank: a vector clock (Mattern,
/// "Virtual Time and Global States of Distributed Systems", 1989).
using Clock = std::vector<int>;

/// Use of a piece of memory by one rank, from one of its moments to another.
struct Access {
  Rank by = 0;
  int begin = 0;
  int end = 0;
  bool writes = false;
  int operation = 0;  // of `by`; what it does to memory that it uses itself is its own affair
  int exchange = 0;   // of the rank whose memory it is, during which it is used; 0: none
  Rank reader =
      -1;  // to whom `by` gives it in that exchange: it has a copy, or reads it before `by` ends that
};

class ProofMemory {
 public:
  /// Keeps references to schedule and programs. Throws ProofFault for a slice that leaves the stream.
  ProofMemory(const Schedule& schedule, Stream stream, std::span<const Program> programs, bool in_place);

  /// A new moment of the rank's; they count from 1.
  int moment(Rank rank);
  /// What was known then is known to the rank from now on.
  void learn(Rank rank, const Clock& from);
  /// Of the rank's last moment.
  const Clock& now(Rank rank) const { return state(rank).moments.back(); }

  /// Whether both areas have the slice in one and the same memory.
  bool is_same(Rank rank, Area a, Area b, Slice slice) const;

  // Throw ProofFault where there is no such place, or nothing there, or something of another kind.
  void use(Rank of, Area area, Slice slice, const Access& access);
  std::vector<Value> values(Rank of, Area area, Slice slice) const;
  void write(Rank of, Area area, Slice slice, const std::vector<Value>& from);

  // When all has ended:
  /// Throws ProofFault for two uses of one memory whose order is open, one of them a write, and for one of
  /// another rank's memory that may come after that rank's last moment.
  void check_accesses() const;
  /// Throws ProofFault for an output that is not what the collective gives.
  void check_results() const;

 private:
  static constexpr int kAreas = 4;

  struct State {
    Clock clock;
    std::vector<Clock> moments;
    std::array<std::vector<Value>, kAreas> values;
    std::array<std::vector<std::vector<Access>>, kAreas> accesses;
  };

  State& state(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const State& state(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  void find_bounds();
  std::size_t segments() const { return bounds_.size() - 1; }
  std::size_t segment_at(Count offset) const;
  std::size_t memory_of(Rank rank, Area area, std::size_t segment) const;
  bool is_own(Rank rank, std::size_t segment) const;
  void check_place(Rank rank, Area area, Slice slice) const;
  void begin(Rank rank);
  bool before(const Access& first, const Access& second) const;
  void check_segment(Rank rank, const std::vector<Access>& accesses, const Access& end) const;
  Count origin_of(Rank rank, Count element) const;

  const Schedule& schedule_;
  std::span<const Program> programs_;
  bool in_place_;
  Count count_;
  Count block_;
  std::vector<Rank> owners_;      // of blocks
  std::vector<Count> own_block_;  // by rank, where it begins
  std::vector<Count> bounds_;     // of segments, which no operation splits
  std::vector<State> ranks_;
};

}  // namespace polyring
