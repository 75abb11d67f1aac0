#include "collectives/cuda/stream_plan.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/index.hpp"

namespace polyring::cuda {
namespace {

/// Areas begin at multiples of it.
constexpr std::uint64_t kAlignment = 256;

class Maker {
 public:
  Maker(const Schedule& schedule, const StaticOrder& order, ElementKind kind, ReduceOp op, Partials partials)
      : schedule_(schedule),
        order_(order),
        kind_(kind),
        op_(op),
        partial_kind_(partials == Partials::apart ? exact_partial(kind, op) : kind) {
    for (const StaticOrder::Slot& slot : order.slots) {
      slots_.push_back(
          {add(slot.staging, partial_kind_), add(slot.partials, partial_kind_), add(slot.work, kind_)});
    }
    if (schedule.blocks() == 1) return;
    for (const Lane& lane : schedule.lanes) owners_.push_back(block_owners(lane, schedule.ranks));
  }

  StreamPlan run() {
    overlaps_ = overlaps();
    for (std::size_t first = 0; first < order_.entries.size();) {
      const std::span<const StaticOrder::Entry> round = order_.round_from(first);
      join(needed_by(round));
      for (const auto& entry : round) {
        if (!order_.step(entry).exchange) add_filling(entry);
      }
      add_group(round);
      for (const auto& entry : round) {
        if (!order_.step(entry).exchange) continue;
        add_filling(entry);
        add_exchange(entry);
      }
      add_folds(first, round);
      first += round.size();
    }
    join(batches_);
    return std::move(plan_);
  }

 private:
  using Entry = StaticOrder::Entry;
  /// Offsets in the slots' memory.
  struct SlotAreas {
    std::uint64_t staging = 0;
    std::uint64_t partials = 0;
    std::uint64_t work = 0;
  };

  bool has_folds(const Entry& entry) const { return !order_.step(entry).folds.empty(); }

  // Batches are numbered from 1: each round with folds has one.

  /// The last batch that an entry of the round comes after; 0: none.
  std::size_t needed_by(std::span<const Entry> round) const {
    std::size_t needed = 0;
    for (const Entry& entry : round) {
      if (entry.after != Entry::kNone) needed = std::max(needed, batch_of_[entry.after]);
    }
    return needed;
  }

  /// Whether a round can begin before all folds of the rounds before it are made.
  bool overlaps() {
    bool found = false;
    std::size_t joined = 0;
    for (std::size_t first = 0; first < order_.entries.size();) {
      const std::span<const Entry> round = order_.round_from(first);
      joined = std::max(joined, needed_by(round));
      found = found || joined < batches_;
      number_batch(first, round);
      first += round.size();
    }
    batches_ = 0;
    return found;
  }
  void number_batch(std::size_t first, std::span<const Entry> round) {
    if (!std::ranges::any_of(round, [&](const Entry& entry) { return has_folds(entry); })) return;
    ++batches_;
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (has_folds(round[i])) batch_of_[first + i] = batches_;
    }
  }

  void join(std::size_t batch) {
    if (!overlaps_ || batch <= joined_) return;
    joined_ = batch;
    plan_.steps.emplace_back(JoinStep{batch});
  }

  void add_folds(std::size_t first, std::span<const Entry> round) {
    const std::size_t before = batches_;
    number_batch(first, round);
    if (batches_ == before) return;
    if (overlaps_) plan_.steps.emplace_back(ForkStep{});
    for (const Entry& entry : round) add_folds(entry);
    if (overlaps_) plan_.steps.emplace_back(MarkStep{batches_});
  }

  std::uint64_t add(Count count, ElementKind kind) {
    const std::uint64_t at = plan_.slots.value;
    const std::uint64_t bytes = bytes_of(count, kind).value;
    plan_.slots = Bytes{at + (bytes + kAlignment - 1) / kAlignment * kAlignment};
    return at;
  }

  ElementKind kind_at(Area area) const { return area == Area::partial ? partial_kind_ : kind_; }
  std::size_t bytes(Count count, ElementKind kind) const { return bytes_of(count, kind).value; }
  Reduction reduction(Area own, Area result, bool last) const {
    return {kind_at(own), op_, last && op_ == ReduceOp::avg ? schedule_.ranks : 1, kind_at(result)};
  }
  const StaticOrder::Work& work(const Entry& entry) const { return order_.works[entry.work]; }
  const SlotAreas& slot(const Entry& entry) const { return slots_[work(entry).slot]; }

  /// Of the slice's first element in the input or the output. `short_in`: the collective in which that buffer
  /// is a rank's block alone.
  Count element(const Entry& entry, Slice slice, Collective short_in) const {
    if (owners_.empty()) return work(entry).slice.offset + slice.offset;
    if (slice.empty()) return 0;
    const Stream stream = work(entry).stream;
    return payload_offset(schedule_, stream, owners_[index(stream.lane)], slice.offset,
                          schedule_.collective == short_in);
  }

  StreamPlace place(const Entry& entry, Slice slice, Area area) const {
    const auto in_slot = [&](std::uint64_t begin) {
      return StreamPlace{StreamMemory::slots, begin + bytes(slice.offset, kind_at(area))};
    };
    switch (area) {
      case Area::input:
        return {StreamMemory::input, bytes(element(entry, slice, Collective::allgather), kind_)};
      case Area::output:
        return {StreamMemory::output, bytes(element(entry, slice, Collective::reduce_scatter), kind_)};
      case Area::partial:
        return in_slot(slot(entry).partials);
      case Area::work:
        return in_slot(slot(entry).work);
    }
    return {};
  }
  StreamPlace staged(const Entry& entry, const Program::Receive& receive) const {
    return {StreamMemory::slots, slot(entry).staging + bytes(receive.staging, partial_kind_)};
  }

  void add_filling(const Entry& entry) {
    const Program::Step& step = order_.step(entry);
    for (const Slice slice : step.widen) {
      plan_.steps.emplace_back(ReduceStep{reduction(Area::input, Area::partial, false),
                                          {place(entry, slice, Area::input)},
                                          place(entry, slice, Area::partial),
                                          slice.count});
    }
    for (const Program::Copy& copy : step.copies) {
      plan_.steps.emplace_back(CopyStep{place(entry, copy.slice, copy.from),
                                        place(entry, copy.slice, copy.to), bytes(copy.slice.count, kind_)});
    }
  }

  void add_group(std::span<const Entry> round) {
    GroupStep group;
    for (const Entry& entry : round) {
      const Program::Step& step = order_.step(entry);
      for (const Program::Receive& receive : step.receives) {
        const bool folds = receive.combine == Combine::reduce;
        const StreamPlace to = folds ? staged(entry, receive) : place(entry, receive.slice, receive.to);
        const ElementKind kind = folds && receive.partial ? partial_kind_ : kind_;
        group.receives.push_back({receive.peer, to, receive.slice.count, kind});
      }
      for (const Program::Send& send : step.sends) {
        group.sends.push_back(
            {send.peer, place(entry, send.slice, send.from), send.slice.count, kind_at(send.from)});
      }
    }
    if (!group.sends.empty() || !group.receives.empty()) plan_.steps.emplace_back(std::move(group));
  }

  void add_exchange(const Entry& entry) {
    const Program::Exchange& exchange = *order_.step(entry).exchange;
    ExchangeStep step;
    for (const Program::Partner& partner : exchange.partners) {
      step.partners.push_back({partner.peer, place(entry, partner.gives, partner.gives_from),
                               bytes(partner.gives.count, kind_at(partner.gives_from)),
                               place(entry, partner.takes, Area::output), partner.read, partner.write});
    }
    step.own = place(entry, exchange.own, exchange.own_at);
    step.own_bytes = bytes(exchange.own.count, kind_at(exchange.own_at));
    step.keeps = exchange.keeps;
    step.result = place(entry, exchange.own, exchange.result);
    step.reduction = reduction(exchange.own_at, exchange.result, exchange.last);
    plan_.steps.emplace_back(std::move(step));
  }

  void add_folds(const Entry& entry) {
    const Program::Step& step = order_.step(entry);
    for (const Program::Fold& fold : step.folds) {
      ReduceStep reduce{reduction(fold.own, fold.result, fold.last),
                        {},
                        place(entry, fold.slice, fold.result),
                        fold.slice.count,
                        overlaps_};
      for (const std::size_t operand : fold.operands) {
        reduce.operands.push_back(operand == Program::Fold::kOwn ? place(entry, fold.slice, fold.own)
                                                                 : staged(entry, step.receives[operand]));
      }
      plan_.steps.emplace_back(std::move(reduce));
    }
  }

  const Schedule& schedule_;
  const StaticOrder& order_;
  ElementKind kind_;
  ReduceOp op_;
  ElementKind partial_kind_;
  std::vector<std::vector<Rank>> owners_;  // by lane: whose block each is
  std::vector<SlotAreas> slots_;
  StreamPlan plan_;
  std::vector<std::size_t> batch_of_ = std::vector<std::size_t>(order_.entries.size());  // by entry; 0: none
  std::size_t batches_ = 0;                                                              // so far
  std::size_t joined_ = 0;
  bool overlaps_ = false;
};

}  // namespace

StreamPlan make_stream_plan(const Schedule& schedule, const StaticOrder& order, ElementKind kind, ReduceOp op,
                            Partials partials) {
  return Maker(schedule, order, kind, op, partials).run();
}

}  // namespace polyring::cuda
