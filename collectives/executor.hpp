// Executor: runs any schedule over any transport, on real buffers.
//
// The streams of a schedule are independent, so several are in flight at once: while one waits for the
// network, the next is being combined, and stages overlap. Each passes through its program step by step.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/allreduce.hpp"
#include "collectives/element.hpp"
#include "collectives/program.hpp"
#include "collectives/schedule.hpp"
#include "collectives/transport.hpp"

namespace polyring {

/// Chunks of each lane that are in flight at once.
inline constexpr int kDefaultWindow = 4;

struct ExecutorOptions {
  int window = kDefaultWindow;
  std::string implementation = "polyring";
};

class Executor final : public Allreduce {
 public:
  /// Keeps a reference to the transport, whose size must be the schedule's number of ranks. All ranks must
  /// make the same schedule; ranks may differ in nothing else.
  Executor(Schedule schedule, ElementKind kind, ReduceOp op, Transport& transport,
           ExecutorOptions options = {});

  std::string algorithm() const override { return schedule_.algorithm; }
  std::string implementation() const override { return options_.implementation; }
  bool keeps_time_limit() const override { return true; }  // transports do
  void run(const std::byte* input, std::byte* output) override;

  const Schedule& schedule() const { return schedule_; }

 private:
  /// A stream in flight.
  struct Slot {
    Memory staging;
    const Program* program = nullptr;  // null: no stream
    Stream stream;
    Count offset = 0;  // of the stream's first element
    std::size_t step = 0;
    enum class Phase { fill, exchange, divide } phase = Phase::fill;
    int pending = 0;                  // operations whose tickets are out
    std::vector<char> arrived;        // per receive of the step
    std::size_t next_to_combine = 0;  // receives are combined in their order
  };

  void drive(std::size_t slot);
  bool next_phase(Slot& slot);
  void begin_phase(std::size_t slot);
  void begin_exchange(std::size_t slot);
  void combine_arrived(std::size_t slot);
  void complete(Ticket ticket);

  std::span<const std::byte> in(const Slot& slot, Slice slice, bool from_input) const;
  std::span<std::byte> out(const Slot& slot, Slice slice) const;
  int tag(Stream stream) const;

  Schedule schedule_;
  ElementKind kind_;
  ReduceOp op_;
  Transport& transport_;
  ExecutorOptions options_;
  std::map<std::pair<int, Count>, Program> programs_;  // by lane and number of elements
  std::vector<Stream> streams_;
  std::vector<Slot> slots_;
  std::vector<Ticket> done_;

  // Of the run in progress.
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::size_t next_stream_ = 0;
  std::size_t active_ = 0;
};

}  // namespace polyring
