#include "collectives/runtime/executor.hpp"

#include <algorithm>
#include <cassert>
#include <functional>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"

namespace polyring {

Executor::Executor(Schedule schedule, ElementKind kind, ReduceOp op, Transport& transport,
                   ExecutorOptions options)
    : schedule_(std::move(schedule)),
      kind_(kind),
      size_(size_of(kind)),
      op_(op),
      partial_kind_(options.partials == Partials::apart ? exact_partial(kind, op) : kind),
      transport_(transport),
      options_(options) {
  if (transport.size() != schedule_.ranks) {
    usage_error("a schedule for {} ranks cannot run on a transport of {}; make them equal", schedule_.ranks,
                transport.size());
  }
  check_window(options_.window);
  const auto reaches = [&](Rank peer) { return transport_.reaches(peer); };
  const Partials partials = partial_kind_ == kind_ ? Partials::in_output : Partials::apart;
  int chunks = 0;
  for (const Lane& lane : schedule_.lanes) chunks = std::max(chunks, lane.chunks);
  tags_ = chunks * static_cast<int>(schedule_.lanes.size());
  Count staging = 0;
  Count longest = 0;  // of the streams with partial results apart
  Count work = 0;     // of those with a work area
  for (const Stream stream : streams_of(schedule_)) {
    const Slice slice = stream_slice(schedule_, stream);
    const std::pair key{stream.lane, slice.count};
    if (!programs_.contains(key)) {
      programs_.emplace(key, compile(schedule_, stream, transport.rank(), reaches, partials));
    }
    const Program& program = programs_.at(key);
    staging = std::max(staging, program.staging);
    if (program.has_partials) longest = std::max(longest, slice.count);
    if (program.has_work) work = std::max(work, slice.count);
    if (!program.steps.empty()) works_.push_back({stream, slice.offset, &program});
  }
  slots_.resize(std::min(works_.size(), schedule_.lanes.size() * static_cast<std::size_t>(options_.window)));
  const auto bytes = [&](Count count) { return bytes_of(count, partial_kind_); };
  for (Slot& slot : slots_) {
    if (staging > 0) slot.staging = transport_.scratch(bytes(staging));
    // Others may combine from there.
    if (longest > 0) slot.partials = transport_.allocate(bytes(longest));
    if (work > 0) slot.work_area = transport_.allocate(bytes_of(work, kind_));
  }
  if (schedule_.blocks() == 1) return;
  for (const Lane& lane : schedule_.lanes) owners_.push_back(block_owners(lane, schedule_.ranks));
}

std::unique_ptr<Executor> make_executor(const Plan& plan, const CollectiveOf& what, Transport& transport) {
  return std::make_unique<Executor>(
      make_schedule(plan, transport.size(), what.count, size_of(what.kind), what.collective), what.kind,
      what.op, transport, ExecutorOptions{.partials = what.partials});
}

void Executor::run(const std::byte* input, std::byte* output) {
  check(input, output);
  transport_.attempt([&] {
    begin(input, output, 0, 0);
    while (!is_done()) {
      done_.clear();
      transport_.wait(done_);
      for (const Ticket ticket : done_) take(ticket);
    }
  });
}

void Executor::begin(const std::byte* input, std::byte* output, int first_tag, Ticket tickets) {
  assert(is_done());
  input_ = input;
  output_ = output;
  first_tag_ = first_tag;
  tickets_ = tickets;
  next_work_ = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) drive(slot);
}

void Executor::take(Ticket ticket) {
  const std::size_t at = (ticket - tickets_) >> 1;
  Slot& slot = slots_[at];
  --((ticket & 1) != 0 ? slot.receiving : slot.others);
  drive(at);
}

void Executor::give_up() {
  active_ = 0;
  for (Slot& slot : slots_) slot.work = nullptr;
  for (Slot& slot : slots_) slot.receiving = slot.others = 0;
}

bool Executor::does_the_same_as(const Executor& other) const {
  return owners_ == other.owners_ && slots_.size() == other.slots_.size() &&
         std::equal(works_.begin(), works_.end(), other.works_.begin(), other.works_.end(),
                    [](const Work& a, const Work& b) {
                      return a.stream == b.stream && a.offset == b.offset && *a.program == *b.program;
                    });
}

void check_buffers(Collective collective, int ranks, Rank rank, Count count, Count element_size,
                   const std::byte* input, const std::byte* output) {
  const bool has_blocks = blocks_of(collective, ranks) > 1;
  if (input == output && !has_blocks) return;
  const Count in = input_count(collective, ranks, count) * element_size;
  const Count out = output_count(collective, ranks, count) * element_size;
  const bool meet = std::less<>()(input, output + out) && std::less<>()(output, input + in);
  if (!meet) return;
  if (!has_blocks)
    usage_error("the buffers overlap, and are not the same; use one for both, or two that do not overlap");
  if (collective == Collective::alltoall)
    usage_error("an alltoall cannot be done in place; give it two buffers");
  const std::byte* const longer = in > out ? input : output;
  const std::byte* const shorter = in > out ? output : input;
  if (shorter != longer + rank * std::min(in, out))
    usage_error(
        "the buffers overlap, and the shorter is not the rank's own block of the longer; use that "
        "place, or two buffers that do not overlap");
}

/// Goes on with the slot until it has to wait for something in flight, or no work is left for it.
void Executor::drive(std::size_t index) {
  while (advance(slots_[index])) begin_phase(index);
}

/// On to the next phase, step or work; false when it is not time for that, or there is none.
bool Executor::advance(Slot& slot) {
  if (slot.work != nullptr) {
    const std::vector<Program::Step>& steps = slot.work->program->steps;
    if (slot.receiving > 0) return false;
    if (slot.phase == Slot::Phase::move && !steps[slot.step].folds.empty()) {
      // What has arrived is combined while sends may still be under way.
      if (slot.others > 0 && steps[slot.step].sends_first) return false;
      slot.phase = Slot::Phase::fold;
      return true;
    }
    if (slot.others > 0) return false;
    if (slot.phase == Slot::Phase::fill) {
      slot.phase = Slot::Phase::move;
      return true;
    }
    slot.phase = Slot::Phase::fill;
    if (++slot.step < steps.size()) return true;
    slot.work = nullptr;
    --active_;
  }
  if (next_work_ == works_.size()) return false;
  slot.work = &works_[next_work_++];
  slot.step = 0;
  slot.phase = Slot::Phase::fill;
  ++active_;
  return true;
}

void Executor::begin_phase(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.work->program->steps[slot.step];
  switch (slot.phase) {
    case Slot::Phase::fill:
      return begin_filling(index);
    case Slot::Phase::move:
      return step.exchange ? begin_exchange(index) : begin_messages(index);
    case Slot::Phase::fold:
      return begin_folds(index);
  }
}

void Executor::begin_filling(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.work->program->steps[slot.step];
  for (const Slice slice : step.widen) {
    ++slot.others;
    operands_.assign(1, in(slot, slice, Area::input).data());
    transport_.combine(reduction(Area::input, Area::partial, false), out(slot, slice, Area::partial).data(),
                       operands_, slice.count, ticket_of(index));
  }
  for (const Program::Copy& copy : step.copies) {
    const std::span<const std::byte> from = in(slot, copy.slice, copy.from);
    std::byte* const to = out(slot, copy.slice, copy.to).data();
    if (from.data() == to) continue;
    ++slot.others;
    transport_.copy(to, from, ticket_of(index));
  }
}

void Executor::begin_messages(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.work->program->steps[slot.step];
  slot.receiving += static_cast<int>(step.receives.size());
  slot.others += static_cast<int>(step.sends.size());
  // Receives first: a message that is awaited need not be buffered.
  for (const Program::Receive& receive : step.receives) {
    std::span<std::byte> to;
    if (receive.combine == Combine::reduce) {
      const ElementKind kind = kind_at(receive.partial ? Area::partial : Area::output);
      to = {staged(slot, receive), bytes_of(receive.slice.count, kind).value};
    } else {
      to = out(slot, receive.slice, receive.to);
    }
    transport_.receive(receive.peer, tag(slot), to, ticket_of(index, true));
  }
  for (const Program::Send& send : step.sends) {
    transport_.send(send.peer, tag(slot), in(slot, send.slice, send.from), ticket_of(index));
  }
}

void Executor::begin_exchange(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Exchange& exchange = *slot.work->program->steps[slot.step].exchange;
  exchange_.tag = tag(slot);
  exchange_.partners.clear();
  for (const Program::Partner& partner : exchange.partners) {
    exchange_.partners.push_back({partner.peer, in(slot, partner.gives, partner.gives_from),
                                  out(slot, partner.takes), partner.read, partner.write});
  }
  exchange_.own = in(slot, exchange.own, exchange.own_at);
  exchange_.result = exchange.keeps ? out(slot, exchange.own, exchange.result).data() : nullptr;
  exchange_.reduction = reduction(exchange.own_at, exchange.result, exchange.last);
  exchange_.payload = bytes_of(schedule_.count, kind_);
  ++slot.others;
  transport_.exchange(exchange_, ticket_of(index));
}

void Executor::begin_folds(std::size_t index) {
  Slot& slot = slots_[index];
  const Program::Step& step = slot.work->program->steps[slot.step];
  for (const Program::Fold& fold : step.folds) {
    operands_.clear();
    for (const std::size_t operand : fold.operands) {
      operands_.push_back(operand == Program::Fold::kOwn ? in(slot, fold.slice, fold.own).data()
                                                         : staged(slot, step.receives[operand]));
    }
    ++slot.others;
    transport_.combine(reduction(fold.own, fold.result, fold.last), out(slot, fold.slice, fold.result).data(),
                       operands_, fold.slice.count, ticket_of(index));
  }
}

std::span<const std::byte> Executor::in(const Slot& slot, Slice slice, Area area) const {
  if (area != Area::input) return out(slot, slice, area);
  return {input_ + offset(slot, slice, Collective::allgather) * size_,
          static_cast<std::size_t>(slice.count * size_)};
}

std::span<std::byte> Executor::out(const Slot& slot, Slice slice, Area area) const {
  if (area == Area::partial) {
    const Count size = size_of(partial_kind_);
    return {slot.partials.get() + slice.offset * size, static_cast<std::size_t>(slice.count * size)};
  }
  const auto bytes = static_cast<std::size_t>(slice.count * size_);
  if (area == Area::work) return {slot.work_area.get() + slice.offset * size_, bytes};
  return {output_ + offset(slot, slice, Collective::reduce_scatter) * size_, bytes};
}

/// `short_in`: the collective in which that buffer is a rank's block alone.
Count Executor::block_offset(const Slot& slot, Slice slice, Collective short_in) const {
  if (slice.empty()) return 0;
  const Stream stream = slot.work->stream;
  return payload_offset(schedule_, stream, owners_[static_cast<std::size_t>(stream.lane)], slice.offset,
                        schedule_.collective == short_in);
}

std::byte* Executor::staged(const Slot& slot, const Program::Receive& receive) const {
  return slot.staging.get() + receive.staging * size_of(partial_kind_);
}

/// Names the slot, and whether the operation is a receive.
Ticket Executor::ticket_of(std::size_t slot, bool receive) const {
  return tickets_ + (Ticket{slot} << 1 | (receive ? 1 : 0));
}

int Executor::tag(const Slot& slot) const {
  const Stream stream = slot.work->stream;
  return first_tag_ + stream.chunk * static_cast<int>(schedule_.lanes.size()) + stream.lane;
}

}  // namespace polyring
