// What the kernels are launched with: one plain struct each, which the launch copies. Kernels take at most
// 4096 bytes on GPUs before Volta.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/runtime/host_device.hpp"

namespace polyring {

inline constexpr int kMostOperands = 128;
inline constexpr int kMostResults = 128;
inline constexpr int kMostPeers = kMostOperands - 1;

/// results[r][i] = operands[0][i] op operands[1][i] op … for all r, as combine_many() of the host computes
/// it. A result of the operands' kind may be one of them; else the buffers are disjoint. Made by
/// reduce_arguments() in make_arguments.hpp.
struct ReduceArguments {
  const std::byte* operands[kMostOperands];
  std::byte* results[kMostResults];
  std::int64_t count;  // of elements; where an exchange hands its operand on as it is, of bytes
  std::int64_t head;   // elements before those that can be read and written 16 bytes at a time
  std::int32_t operand_count;
  std::int32_t result_count;
  std::int32_t divisor;  // of a sum that is an average
};

/// In the memory of one rank, written by another: the epoch that the writer has come to.
struct FlagPair {
  std::uint32_t ready;  // its memory may be read and written
  std::uint32_t done;   // it has read all that it reads, and written all that it writes
};

/// In a rank's own memory, for its own blocks: all 0 before the first kernel.
struct StepCounters {
  std::uint32_t staged;      // blocks that have copied their part; 0 again afterwards
  std::uint32_t finished;    // blocks that have computed their part; 0 again afterwards
  std::uint32_t copies;      // exchanges with a copy
  std::uint32_t copied;      // the last of these whose copy is whole
  std::uint32_t unfinished;  // the number of the first kernel that was aborted; 0: none was
};

/// What ends all waiting of a kernel, and where it says whom it has waited for in vain.
struct KernelWatch {
  std::uint32_t* abort;   // in pinned host memory: not 0 ends all waiting
  std::uint32_t* status;  // in pinned host memory, by place: stays 0, or becomes kMissedReady or kMissedDone
  std::uint32_t number;   // the kernel's: only the first that is aborted writes a status
};
inline constexpr std::uint32_t kMissedReady = 1;
inline constexpr std::uint32_t kMissedDone = 2;

/// A step among ranks that reach each other's memory. The ranks of a host have places, from 0 to
/// kMostOperands - 1, the same on all of them; arrays by place have one for the rank itself, too. Any two
/// ranks do their exchanges with each other in the same order. The epoch of an exchange is how many its two
/// ranks have begun with each other: kept in memory, so that a launch can be repeated as it is. All words are
/// 0 before the first exchange; after one that was aborted they must be set to 0 again.
struct ExchangeArguments {
  ReduceArguments reduce;  // over the memory of all ranks; this rank's operand is never its staging memory
  FlagPair* own;           // in this rank's memory, by place
  FlagPair* theirs[kMostPeers];  // in each peer's memory, what this rank writes
  std::uint32_t* epochs;         // in this rank's memory, by place: exchanges that are over
  StepCounters* counters;
  const std::byte* staged_from;  // what peers read but results overwrite; they read the copy in `staging`
  std::byte* staging;
  std::int64_t staged_bytes;  // 0: nothing is copied
  KernelWatch watch;
  std::int32_t peer_count;
  std::uint8_t places[kMostPeers];  // of the peers
  std::uint8_t own_place;
};
static_assert(sizeof(ExchangeArguments) <= 4096);

inline constexpr int kMostMessages = 64;  // of one kernel

struct MessageCopy {
  const std::byte* from;  // in this rank's memory
  std::byte* to;          // in the receiver's
  std::int64_t bytes;
};

/// Messages among ranks that reach each other's memory: those of one round, or a part of what one rank sends
/// in it. Of the kernels of one round the first begins it and the last ends it. As for exchanges, any two
/// ranks do their rounds with each other in the same order; the epochs of a round are how many rounds have
/// had messages of the one to the other.
struct MessageArguments {
  MessageCopy copies[kMostMessages];
  FlagPair* own;  // in this rank's memory, by place: `ready` of a receiver, `done` of a sender
  FlagPair* senders[kMostMessages];    // in their memory: this rank's `ready`
  FlagPair* receivers[kMostMessages];  // in their memory: this rank's `done`
  std::uint32_t* sent;      // in this rank's memory, by place: rounds with messages to it that are over
  std::uint32_t* received;  // the same, from it
  StepCounters* counters;
  KernelWatch watch;
  std::int32_t copy_count;
  std::int32_t sender_count;
  std::int32_t receiver_count;
  std::uint8_t sender_places[kMostMessages];
  std::uint8_t receiver_places[kMostMessages];
  bool begins;
  bool ends;
};
static_assert(sizeof(MessageArguments) <= 4096);

/// Byte i becomes byte i mod 4 of the pattern, the lowest first.
struct FillArguments {
  std::byte* to;
  std::int64_t bytes;
  std::uint32_t pattern;
};

/// Adds to `differing` the number of elements whose bits differ.
struct CompareArguments {
  const std::byte* left;
  const std::byte* right;
  std::int64_t count;
  std::uint64_t* differing;
  std::int32_t element_bytes;  // 1, 2, 4 or 8, which both addresses are multiples of
};

/// Each thread multiplies and adds so many times.
struct WorkArguments {
  float* result;  // of the first thread: otherwise a compiler would leave the work out
  std::int64_t turns;
  float factor;
  float summand;
};

}  // namespace polyring
