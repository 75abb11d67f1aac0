// StreamPlan: a static order as a list of steps over a rank's memory, for whatever buffers. What a step reads
// and writes is known by its place, so the addresses come later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/static_order.hpp"

namespace polyring::cuda {

/// A rank's memory in a collective.
enum class StreamMemory : std::uint32_t {
  input,
  output,
  slots,   // of the static order
  copies,  // of what others read and this rank overwrites
};
inline constexpr std::size_t kStreamMemories = 4;

struct StreamPlace {
  StreamMemory memory = StreamMemory::input;
  std::uint64_t offset = 0;  // bytes
};

struct CopyStep {
  StreamPlace from;
  StreamPlace to;
  std::size_t bytes = 0;
};

/// In this rank's memory.
struct ReduceStep {
  Reduction reduction;
  std::vector<StreamPlace> operands;
  StreamPlace result;
  Count count = 0;
  bool aside = false;  // on the stream that computes
};

// Where folds overlap with the messages of later rounds, there are two streams: one for all that passes
// between ranks, and one that computes. They wait for each other in three steps.

/// What is computed from now on comes behind all that the other stream has.
struct ForkStep {};
/// Ends a batch of what is computed.
struct MarkStep {
  std::size_t batch = 0;
};
/// What passes between ranks from now on comes behind a batch.
struct JoinStep {
  std::size_t batch = 0;
};

/// All messages of a round.
struct GroupStep {
  struct Message {
    Rank peer = 0;
    StreamPlace place;  // in this rank's memory
    Count count = 0;
    ElementKind kind = ElementKind::float32;
  };
  std::vector<Message> sends;
  std::vector<Message> receives;
};

struct ExchangeStep {
  struct Partner {
    Rank rank = 0;
    StreamPlace gives;  // this rank's, for the partner to read
    std::size_t gives_bytes = 0;
    StreamPlace takes;  // this rank's, for the partner to write
    bool read = false;
    bool write = false;
  };
  std::vector<Partner> partners;
  StreamPlace own;
  std::size_t own_bytes = 0;
  StreamPlace result;
  bool keeps = false;  // the result is for this rank, too
  Reduction reduction;
};

using StreamStep = std::variant<CopyStep, ReduceStep, GroupStep, ExchangeStep, ForkStep, MarkStep, JoinStep>;

struct StreamPlan {
  std::vector<StreamStep> steps;  // in the order of static_order.hpp
  Bytes slots;                    // of memory
};

/// `partials` are those that the order was made with.
StreamPlan make_stream_plan(const Schedule& schedule, const StaticOrder& order, ElementKind kind, ReduceOp op,
                            Partials partials);

}  // namespace polyring::cuda
