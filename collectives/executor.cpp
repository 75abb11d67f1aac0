#include "collectives/executor.hpp"

#include <algorithm>
#include <cassert>

namespace polyring {
namespace {

// A ticket names the slot and, for a receive that will be combined, which of the step's receives it is.
constexpr Ticket kPlain = 0xffffffff;
Ticket ticket_of(std::size_t slot, Ticket receive = kPlain) { return Ticket{slot} << 32 | receive; }

/// Lanes take turns, so that all of them make progress from the start.
std::vector<Stream> streams_of(const Schedule& schedule) {
  std::vector<Stream> streams;
  int most = 0;
  for (const Lane& lane : schedule.lanes) most = std::max(most, lane.chunks);
  for (int chunk = 0; chunk < most; ++chunk) {
    for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
      if (chunk >= schedule.lanes[static_cast<std::size_t>(lane)].chunks) continue;
      if (!stream_slice(schedule, {lane, chunk}).empty()) streams.push_back({lane, chunk});
    }
  }
  return streams;
}

}  // namespace

Executor::Executor(Schedule schedule, ElementKind kind, ReduceOp op, Transport& transport,
                   ExecutorOptions options)
    : schedule_(std::move(schedule)),
      kind_(kind),
      op_(op),
      transport_(transport),
      options_(std::move(options)),
      streams_(streams_of(schedule_)) {
  assert(transport.size() == schedule_.ranks && options_.window > 0);
  Count staging = 0;
  for (const Stream stream : streams_) {
    const std::pair key{stream.lane, stream_slice(schedule_, stream).count};
    if (programs_.contains(key)) continue;
    const Program& program =
        programs_.emplace(key, compile(schedule_, stream, transport.rank())).first->second;
    staging = std::max(staging, program.staging);
  }
  slots_.resize(
      std::min(streams_.size(), schedule_.lanes.size() * static_cast<std::size_t>(options_.window)));
  for (Slot& slot : slots_) {
    slot.staging = transport_.allocate({static_cast<std::uint64_t>(staging * size_of(kind))});
  }
}

void Executor::run(const std::byte* input, std::byte* output) {
  input_ = input;
  output_ = output;
  next_stream_ = 0;
  active_ = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) drive(slot);
  while (active_ > 0) {
    done_.clear();
    transport_.wait(done_);
    for (const Ticket ticket : done_) complete(ticket);
  }
}

/// Goes on with the slot until it has something in flight, or no stream is left for it.
void Executor::drive(std::size_t slot) {
  while (slots_[slot].pending == 0 && next_phase(slots_[slot])) begin_phase(slot);
}

/// On to the next phase, step or stream; false when there is none.
bool Executor::next_phase(Slot& slot) {
  if (slot.program != nullptr) {
    if (slot.phase != Slot::Phase::divide) {
      slot.phase = slot.phase == Slot::Phase::fill ? Slot::Phase::exchange : Slot::Phase::divide;
      return true;
    }
    slot.phase = Slot::Phase::fill;
    if (++slot.step < slot.program->steps.size()) return true;
    slot.program = nullptr;
    --active_;
  }
  while (next_stream_ < streams_.size()) {
    slot.stream = streams_[next_stream_++];
    const Slice slice = stream_slice(schedule_, slot.stream);
    const Program& program = programs_.at({slot.stream.lane, slice.count});
    if (program.steps.empty()) continue;
    slot.program = &program;
    slot.offset = slice.offset;
    slot.step = 0;
    slot.phase = Slot::Phase::fill;
    ++active_;
    return true;
  }
  return false;
}

void Executor::begin_phase(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.program->steps[slot.step];
  switch (slot.phase) {
    case Slot::Phase::fill:
      if (input_ == output_) return;
      for (const Slice slice : step.fill) {
        ++slot.pending;
        transport_.copy(out(slot, slice).data(), in(slot, slice, true), ticket_of(index));
      }
      return;
    case Slot::Phase::exchange:
      return begin_exchange(index);
    case Slot::Phase::divide:
      if (op_ != ReduceOp::avg || step.divide.empty()) return;
      ++slot.pending;
      transport_.divide(kind_, out(slot, step.divide).data(), step.divide.count, schedule_.ranks,
                        ticket_of(index));
      return;
  }
}

void Executor::begin_exchange(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.program->steps[slot.step];
  const int message_tag = tag(slot.stream);
  slot.arrived.assign(step.receives.size(), 0);
  slot.next_to_combine = 0;
  slot.pending += static_cast<int>(step.receives.size() + step.sends.size());
  // Receives first: a message that is awaited need not be buffered.
  for (std::size_t i = 0; i < step.receives.size(); ++i) {
    const Program::Receive& receive = step.receives[i];
    std::span<std::byte> to = out(slot, receive.slice);
    if (receive.combine == Combine::reduce) {
      to = {slot.staging.get() + receive.staging * size_of(kind_), to.size()};
    }
    transport_.receive(receive.peer, message_tag, to, ticket_of(index, i));
  }
  for (const Program::Send& send : step.sends) {
    transport_.send(send.peer, message_tag, in(slot, send.slice, send.from_input), ticket_of(index));
  }
}

void Executor::combine_arrived(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.program->steps[slot.step];
  for (; slot.next_to_combine < step.receives.size() && slot.arrived[slot.next_to_combine] != 0;
       ++slot.next_to_combine) {
    const Program::Receive& receive = step.receives[slot.next_to_combine];
    if (receive.combine == Combine::copy) continue;
    ++slot.pending;
    transport_.combine(
        kind_, op_, out(slot, receive.slice).data(), in(slot, receive.slice, receive.left_in_input).data(),
        slot.staging.get() + receive.staging * size_of(kind_), receive.slice.count, ticket_of(index));
  }
}

void Executor::complete(Ticket ticket) {
  const std::size_t index = ticket >> 32;
  Slot& slot = slots_[index];
  const Ticket receive = ticket & kPlain;
  if (receive != kPlain) {
    slot.arrived[receive] = 1;
    combine_arrived(index);
  }
  --slot.pending;
  drive(index);
}

std::span<const std::byte> Executor::in(const Slot& slot, Slice slice, bool from_input) const {
  const Count size = size_of(kind_);
  return {(from_input ? input_ : output_) + (slot.offset + slice.offset) * size,
          static_cast<std::size_t>(slice.count * size)};
}

std::span<std::byte> Executor::out(const Slot& slot, Slice slice) const {
  const Count size = size_of(kind_);
  return {output_ + (slot.offset + slice.offset) * size, static_cast<std::size_t>(slice.count * size)};
}

int Executor::tag(Stream stream) const {
  return stream.chunk * static_cast<int>(schedule_.lanes.size()) + stream.lane;
}

}  // namespace polyring
