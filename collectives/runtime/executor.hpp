// Executor: runs any schedule over any transport, on real buffers.
//
// The streams of a schedule are independent, so several are in flight at once: while one waits for the
// network, the next is being combined, and stages overlap. Each passes through its program step by step.
// An executor has one run in flight at a time; a Runner has several executors run at once.
//
// Guaranteed: for one plan the result has the same bits on all ranks and from run to run, in place or not, in
// whatever buffers and whoever comes late. A step combines all of its operands at once, in the order of the
// ranks. float16 and bfloat16 are combined in float32 and rounded once, when they are complete: until then
// partial sums stay float32, in messages as well, unless Partials::in_output has them rounded at each step.
// NaNs and zeros are no exception: see combine_many() in kernels.hpp. One rank alone copies its input,
// whatever is in it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/runtime/transport.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/plan.hpp"
#include "collectives/schedule/program.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

/// What is to be computed.
struct CollectiveOf {
  Collective collective = Collective::allreduce;
  /// Elements of the longer of a rank's two buffers; a multiple of the number of ranks where they have
  /// blocks.
  Count count = 0;
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
  Partials partials = Partials::apart;

  ElementSizes sizes() const { return {kind, op, partials}; }
  auto operator<=>(const CollectiveOf&) const = default;
};

struct ExecutorOptions {
  int window = kDefaultWindow;
  Partials partials = Partials::apart;  // of sums and products of float16 and bfloat16
};

/// Throws a usage Error unless a rank's buffers are apart, or in place as Executor::run() says. `count`:
/// elements of the longer of the two.
void check_buffers(Collective collective, int ranks, Rank rank, Count count, Count element_size,
                   const std::byte* input, const std::byte* output);

class Executor {
 public:
  /// Keeps a reference to the transport. All ranks must make the same schedule; ranks may differ in nothing
  /// else. Throws a usage Error unless the transport's size is the schedule's number of ranks.
  Executor(Schedule schedule, ElementKind kind, ReduceOp op, Transport& transport,
           ExecutorOptions options = {});

  /// All ranks must call it. Computes this rank's `output` of the collective from all ranks' `input`. Returns
  /// when `output` is complete and `input` is no longer read. The two are disjoint or, in place, where the
  /// shorter is the rank's block of the longer: the same address for an allreduce. An alltoall is not done in
  /// place. Whether it returns or throws, nothing is in flight any more.
  void run(const std::byte* input, std::byte* output);

  // For a Runner, the parts of run():

  /// Throws a usage Error unless these buffers are apart, or in place as run() says.
  void check(const std::byte* input, const std::byte* output) const {
    check_buffers(schedule_.collective, schedule_.ranks, transport_.rank(), schedule_.count, size_, input,
                  output);
  }
  /// Starts what can be started. Tags are from `first_tag` to `first_tag` + tags() − 1, and tickets are
  /// `tickets` plus a number below kTickets. Only within Transport::attempt().
  void begin(const std::byte* input, std::byte* output, int first_tag, Ticket tickets);
  /// Goes on: this ticket has come back. Only within Transport::attempt().
  void take(Ticket ticket);
  /// Whether nothing is in flight.
  bool is_done() const { return active_ == 0; }
  /// After Transport::abandon().
  void give_up();
  int tags() const { return tags_; }
  static constexpr Ticket kTickets = Ticket{1} << 32;

  const Schedule& schedule() const { return schedule_; }
  /// Whether both do the same on this rank: the same steps on the same elements, in the same order.
  bool does_the_same_as(const Executor& other) const;

 private:
  /// A chunk of a lane, ready to run.
  struct Work {
    Stream stream;
    Count offset = 0;  // of its first element
    const Program* program = nullptr;
  };
  /// Where a work in flight is.
  struct Slot {
    Memory staging;
    Memory partials;
    Memory work_area;
    const Work* work = nullptr;  // null: none
    std::size_t step = 0;
    enum class Phase { fill, move, fold } phase = Phase::fill;
    int receiving = 0;  // operations whose tickets are out
    int others = 0;
  };

  void drive(std::size_t slot);
  bool advance(Slot& slot);
  void begin_phase(std::size_t slot);
  void begin_filling(std::size_t slot);
  void begin_messages(std::size_t slot);
  void begin_exchange(std::size_t slot);
  void begin_folds(std::size_t slot);

  std::span<const std::byte> in(const Slot& slot, Slice slice, Area area) const;
  std::span<std::byte> out(const Slot& slot, Slice slice, Area area = Area::output) const;
  /// Of the slice's first element in the input or the output.
  Count offset(const Slot& slot, Slice slice, Collective short_in) const {
    return owners_.empty() ? slot.work->offset + slice.offset : block_offset(slot, slice, short_in);
  }
  Count block_offset(const Slot& slot, Slice slice, Collective short_in) const;
  std::byte* staged(const Slot& slot, const Program::Receive& receive) const;
  ElementKind kind_at(Area area) const { return area == Area::partial ? partial_kind_ : kind_; }
  Reduction reduction(Area own, Area result, bool last) const {
    return {kind_at(own), op_, last && op_ == ReduceOp::avg ? schedule_.ranks : 1, kind_at(result)};
  }
  int tag(const Slot& slot) const;
  Ticket ticket_of(std::size_t slot, bool receive = false) const;

  Schedule schedule_;
  ElementKind kind_;
  Count size_;  // bytes of an element
  ReduceOp op_;
  ElementKind partial_kind_;
  Transport& transport_;
  ExecutorOptions options_;
  std::map<std::pair<int, Count>, Program> programs_;  // by lane and number of elements
  std::vector<std::vector<Rank>> owners_;              // by lane: whose block each is
  std::vector<Work> works_;
  std::vector<Slot> slots_;
  std::vector<Ticket> done_;
  std::vector<const std::byte*> operands_;
  Exchange exchange_;
  int tags_ = 0;  // as many as it has streams, numbered chunk by chunk

  // Of the run in progress.
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::size_t next_work_ = 0;
  std::size_t active_ = 0;
  int first_tag_ = 0;
  Ticket tickets_ = 0;
};

/// The plan's schedule over the transport. Throws as make_schedule() does.
std::unique_ptr<Executor> make_executor(const Plan& plan, const CollectiveOf& what, Transport& transport);

}  // namespace polyring
