#include "collectives/schedule/verify_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/schedule/proof_memory.hpp"

namespace polyring {
namespace {

class Proof {
 public:
  Proof(const Schedule& schedule, Stream stream, std::span<const Program> programs, bool in_place)
      : schedule_(schedule),
        programs_(programs),
        rounds_once_(std::ranges::any_of(programs, &Program::has_partials)),
        memory_(schedule, stream, programs, in_place),
        ranks_(index(schedule.ranks)) {}

  void run() {
    bool all_ended = false;
    while (!all_ended) {
      bool moved = false;
      all_ended = true;
      for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
        while (advance(rank)) moved = true;
        all_ended = all_ended && state(rank).ended;
      }
      if (!all_ended && !moved) fail("{}", who_waits());
    }
    check_nothing_left();
    memory_.check_accesses();
    memory_.check_results();
  }

 private:
  struct Message {
    std::vector<Value> values;  // of each segment
    Count count = 0;
    Clock sent;
  };
  struct Offer {
    std::vector<Value> values;
    Slice gives;
    Area from = Area::input;
    Slice takes;
    Clock came;
  };
  enum class Phase { begin, messages, sending, exchange, leaving };
  /// How far a rank has come.
  struct State {
    std::size_t step = 0;
    Phase phase = Phase::begin;
    bool ended = false;
    int operation = 0;
    int came = 0;      // the moment at which the step's messages or its exchange began
    int exchange = 0;  // the current one
  };

  State& state(Rank rank) { return ranks_[index(rank)]; }
  const State& state(Rank rank) const { return ranks_[index(rank)]; }

  /// Of operands of one kind, `partial` or the payload's, into the kind of an area.
  std::vector<Value> combined(Rank rank, const std::vector<std::vector<Value>>& operands, bool partial,
                              bool last, Area into) const {
    std::vector<Value> result = operands.front();
    if (result.front().partial != partial) fail("rank {} takes operands for another kind", rank);
    for (std::size_t operand = 1; operand < operands.size(); ++operand) {
      if (operands[operand].size() != result.size()) fail("rank {} combines slices of unequal length", rank);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const Value& more = operands[operand][i];
        if (more.partial != result[i].partial) fail("rank {} combines elements of two kinds", rank);
        if ((more.ranks & result[i].ranks) != 0) fail("rank {} counts a contribution twice", rank);
        if (more.origin != result[i].origin) fail("rank {} combines other elements", rank);
        if (more.last || result[i].last) fail("rank {} adds to a complete result", rank);
        result[i].ranks |= more.ranks;
      }
    }
    if (last && !reduces(schedule_.collective)) fail("rank {} ends a result where nothing is reduced", rank);
    for (Value& value : result) {
      if (last && value.last) fail("rank {} ends a result twice", rank);
      value.last = value.last || last;
      value.partial = into == Area::partial;
      if (rounds_once_ && operands.size() > 1 && !value.partial && !value.last)
        fail("rank {} rounds a partial result", rank);
    }
    return result;
  }

  /// Does what the rank can do next; false where it has to wait, or has ended.
  bool advance(Rank rank) {
    State& at = state(rank);
    if (at.ended) return false;
    if (at.step == programs_[index(rank)].steps.size()) {
      memory_.moment(rank);
      at.ended = true;
      return true;
    }
    const Program::Step& step = programs_[index(rank)].steps[at.step];
    switch (at.phase) {
      case Phase::begin:
        prepare(rank, step);
        at.came = memory_.moment(rank);
        if (step.exchange) {
          if (!step.sends.empty() || !step.receives.empty() || !step.folds.empty())
            fail("rank {} sends messages beside an exchange", rank);
          come(rank, *step.exchange);
          at.phase = Phase::exchange;
        } else {
          send(rank, step);
          at.phase = Phase::messages;
        }
        return true;
      case Phase::messages:
        return receive(rank, step);
      case Phase::sending:
        if (!all_taken(rank)) return false;
        memory_.moment(rank);
        next_step(rank);
        return true;
      case Phase::exchange:
        return exchange(rank, *step.exchange);
      case Phase::leaving:
        return leave(rank, *step.exchange);
    }
    return false;
  }

  void next_step(Rank rank) {
    ++state(rank).step;
    state(rank).phase = Phase::begin;
  }

  /// Whether all that the rank has sent is awaited by its receivers: no send ends before, and no step before
  /// its sends.
  bool all_taken(Rank rank) const {
    for (auto sent = sent_.lower_bound({rank, 0}); sent != sent_.end() && sent->first.first == rank; ++sent) {
      const auto posted = posted_.find(sent->first);
      if (posted == posted_.end() || posted->second < sent->second) return false;
    }
    return true;
  }

  /// Copies and conversions, in any order.
  void prepare(Rank rank, const Program::Step& step) {
    const int begin = memory_.moment(rank);
    const auto move = [&](Slice slice, Area from, Area to) {
      const int operation = ++state(rank).operation;
      std::vector<Value> moved = memory_.values(rank, from, slice);
      if (memory_.is_same(rank, from, to, slice)) return;  // onto itself
      for (Value& value : moved) value.partial = to == Area::partial;
      memory_.use(rank, from, slice, {rank, begin, begin + 1, false, operation});
      memory_.use(rank, to, slice, {rank, begin, begin + 1, true, operation});
      memory_.write(rank, to, slice, moved);
    };
    for (const Program::Copy& copy : step.copies) {
      if (copy.from == Area::partial || copy.to == Area::partial)
        fail("rank {} copies partial results, which are of another kind", rank);
      move(copy.slice, copy.from, copy.to);
    }
    for (const Slice slice : step.widen) move(slice, Area::input, Area::partial);
  }

  void send(Rank rank, const Program::Step& step) {
    State& at = state(rank);
    for (const Program::Receive& receive : step.receives) ++posted_[{receive.peer, rank}];
    for (const Program::Send& send : step.sends) ++sent_[{rank, send.peer}];
    // Until all of the step has ended, or where they are waited for first, until folds begin.
    const int end = at.came + (step.sends_first ? 1 : 2);
    for (const Program::Send& send : step.sends) {
      memory_.use(rank, send.from, send.slice, {rank, at.came, end, false, ++at.operation});
      messages_[{rank, send.peer}].push_back(
          {memory_.values(rank, send.from, send.slice), send.slice.count, memory_.now(rank)});
    }
  }

  bool receive(Rank rank, const Program::Step& step) {
    State& at = state(rank);
    std::map<Rank, std::size_t> wanted;
    for (const Program::Receive& receive : step.receives) ++wanted[receive.peer];
    for (const auto& [peer, number] : wanted)
      if (messages_[{peer, rank}].size() < number) return false;
    if (step.sends_first && !all_taken(rank)) return false;
    std::vector<std::vector<Value>> staged(step.receives.size());
    for (std::size_t i = 0; i < step.receives.size(); ++i) {
      const Program::Receive& receive = step.receives[i];
      std::deque<Message>& queue = messages_[{receive.peer, rank}];
      const Message message = std::move(queue.front());
      queue.pop_front();
      memory_.learn(rank, message.sent);
      if (message.count != receive.slice.count || message.values.empty() ||
          message.values.front().partial != receive.partial) {
        fail("rank {} sends rank {} {} elements, and it awaits {}, or of another kind", receive.peer, rank,
             message.count, receive.slice.count);
      }
      if (receive.combine == Combine::reduce) {
        check_staging(rank, step, i);
        staged[i] = message.values;
        continue;
      }
      if (receive.to == Area::partial) fail("rank {} receives a copy of partial results", rank);
      memory_.use(rank, receive.to, receive.slice, {rank, at.came, at.came + 1, true, ++at.operation});
      memory_.write(rank, receive.to, receive.slice, message.values);
    }
    const int arrived = memory_.moment(rank);
    std::vector<std::pair<const Program::Fold*, std::vector<Value>>> results;
    std::set<std::size_t> used;
    for (const Program::Fold& fold : step.folds)
      results.emplace_back(&fold, folded(rank, step, fold, staged, used));
    for (std::size_t i = 0; i < staged.size(); ++i)
      if (!staged[i].empty() && !used.contains(i)) fail("rank {} does not use what it receives", rank);
    for (const auto& [fold, result] : results) {
      const int operation = ++at.operation;
      memory_.use(rank, fold->own, fold->slice, {rank, arrived, arrived + 1, false, operation});
      memory_.use(rank, fold->result, fold->slice, {rank, arrived, arrived + 1, true, operation});
      memory_.write(rank, fold->result, fold->slice, result);
    }
    at.phase = Phase::sending;
    return true;
  }

  std::vector<Value> folded(Rank rank, const Program::Step& step, const Program::Fold& fold,
                            const std::vector<std::vector<Value>>& staged,
                            std::set<std::size_t>& used) const {
    std::vector<std::vector<Value>> operands;
    Rank previous = -1;
    for (const std::size_t operand : fold.operands) {
      const bool own = operand == Program::Fold::kOwn;
      if (!own && (operand >= staged.size() || staged[operand].empty() || !used.insert(operand).second ||
                   step.receives[operand].slice != fold.slice)) {
        fail("rank {} combines what it has not received for these elements", rank);
      }
      const Rank from = own ? rank : step.receives[operand].peer;
      if (from <= previous) fail("rank {} combines in another order than that of the ranks", rank);
      previous = from;
      operands.push_back(own ? memory_.values(rank, fold.own, fold.slice) : staged[operand]);
    }
    if (operands.empty()) fail("rank {} combines nothing", rank);
    return combined(rank, operands, fold.own == Area::partial, fold.last, fold.result);
  }

  /// Within the staging area, and apart from the step's other messages.
  void check_staging(Rank rank, const Program::Step& step, std::size_t which) const {
    const auto place = [&](std::size_t i) {
      return Slice{step.receives[i].staging, step.receives[i].slice.count};
    };
    if (place(which).offset < 0 || place(which).end() > programs_[index(rank)].staging)
      fail("rank {} receives beyond its staging area", rank);
    for (std::size_t other = 0; other < which; ++other) {
      if (step.receives[other].combine == Combine::reduce && place(other).overlaps(place(which)))
        fail("rank {} receives two messages into one place", rank);
    }
  }

  void come(Rank rank, const Program::Exchange& exchange) {
    State& at = state(rank);
    at.exchange = ++at.operation;
    for (std::size_t i = 0; i < exchange.partners.size(); ++i) {
      const Program::Partner& partner = exchange.partners[i];
      if (i > 0 && partner.peer <= exchange.partners[i - 1].peer) fail("rank {} exchanges in no order", rank);
      if (!is_used(partner)) continue;
      Offer offer{{}, partner.gives, partner.gives_from, partner.takes, memory_.now(rank)};
      if (!offer.gives.empty()) offer.values = memory_.values(rank, offer.from, offer.gives);
      offers_[{rank, partner.peer}].push_back(std::move(offer));
    }
  }

  static bool uses(const Program::Partner& partner) { return partner.read || partner.write; }
  static bool is_used(const Program::Partner& partner) {
    return !partner.gives.empty() || !partner.takes.empty();
  }

  /// Reads, combines and writes, once those have come whose memory it uses.
  bool exchange(Rank rank, const Program::Exchange& exchange) {
    State& at = state(rank);
    for (const Program::Partner& partner : exchange.partners)
      if (uses(partner) && offers_[{partner.peer, rank}].empty()) return false;
    std::vector<Offer> offers(exchange.partners.size());
    for (std::size_t i = 0; i < offers.size(); ++i) {
      if (!uses(exchange.partners[i])) continue;
      std::deque<Offer>& queue = offers_[{exchange.partners[i].peer, rank}];
      offers[i] = std::move(queue.front());
      queue.pop_front();
      memory_.learn(rank, offers[i].came);
    }
    combine_exchange(rank, exchange, offers);
    for (const Program::Partner& partner : exchange.partners)
      if (partner.write) done_[{rank, partner.peer}].push_back(memory_.now(rank));
    at.phase = Phase::leaving;
    return true;
  }

  void combine_exchange(Rank rank, const Program::Exchange& exchange, const std::vector<Offer>& offers) {
    const int begin = memory_.moment(rank);
    const int end = memory_.moment(rank);
    const int operation = ++state(rank).operation;
    const auto access = [&](Rank of, bool is_write) {
      return Access{rank, begin, end, is_write, operation, state(of).exchange};
    };
    const bool reads = std::ranges::any_of(exchange.partners, &Program::Partner::read);
    const bool writes = std::ranges::any_of(exchange.partners, &Program::Partner::write);
    // What is only handed on is copied as it is.
    if (!reads && (exchange.keeps || exchange.last || (writes && exchange.own_at == Area::partial)))
      fail("rank {} makes a result of what it only hands on", rank);
    std::map<Rank, std::vector<Value>> operands;
    if (exchange.keeps || writes) {
      memory_.use(rank, exchange.own_at, exchange.own, access(rank, false));
      operands[rank] = memory_.values(rank, exchange.own_at, exchange.own);
    }
    for (std::size_t i = 0; i < offers.size(); ++i) {
      const Program::Partner& partner = exchange.partners[i];
      if (!uses(partner)) continue;
      if (offers[i].gives != (partner.read ? exchange.own : Slice{}) ||
          offers[i].takes != (partner.write ? exchange.own : Slice{})) {
        fail("ranks {} and {} disagree on what one uses of the other's memory", rank, partner.peer);
      }
      if (!partner.read) continue;
      operands[partner.peer] = offers[i].values;
    }
    if (operands.empty()) return;
    std::vector<std::vector<Value>> in_order;
    for (auto& [from, operand] : operands) in_order.push_back(std::move(operand));
    const Area into = exchange.keeps ? exchange.result : Area::output;
    const std::vector<Value> result =
        combined(rank, in_order, exchange.own_at == Area::partial, exchange.last, into);
    const auto put = [&](Rank of, Area area) {
      memory_.use(of, area, exchange.own, access(of, true));
      memory_.write(of, area, exchange.own, result);
    };
    if (exchange.keeps) put(rank, exchange.result);
    for (const Program::Partner& partner : exchange.partners)
      if (partner.write) put(partner.peer, Area::output);
  }

  /// Ends the exchange, once those have written to this rank's memory that do. Who reads may have a copy,
  /// made when this rank came, and still be at it.
  bool leave(Rank rank, const Program::Exchange& exchange) {
    State& at = state(rank);
    for (const Program::Partner& partner : exchange.partners)
      if (!partner.takes.empty() && done_[{partner.peer, rank}].empty()) return false;
    for (const Program::Partner& partner : exchange.partners) {
      if (partner.takes.empty()) continue;
      std::deque<Clock>& queue = done_[{partner.peer, rank}];
      memory_.learn(rank, queue.front());
      queue.pop_front();
    }
    const int left = memory_.moment(rank);
    for (const Program::Partner& partner : exchange.partners) {
      if (partner.gives.empty()) continue;
      memory_.use(rank, partner.gives_from, partner.gives,
                  {rank, at.came, left, false, ++at.operation, at.exchange, partner.peer});
    }
    next_step(rank);
    return true;
  }

  std::string who_waits() const {
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      if (!state(rank).ended)
        return fmt::format("rank {} waits for ever, in step {}", rank, state(rank).step);
    }
    return "";
  }

  void check_nothing_left() const {
    for (const auto& [pair, queue] : messages_)
      if (!queue.empty()) fail("rank {} sends rank {} what it does not receive", pair.first, pair.second);
    for (const auto& [pair, queue] : offers_)
      if (!queue.empty())
        fail("rank {} offers rank {} an exchange, which does not come", pair.first, pair.second);
  }

  const Schedule& schedule_;
  std::span<const Program> programs_;
  bool rounds_once_;  // whether partial results are apart
  ProofMemory memory_;
  std::vector<State> ranks_;
  std::map<std::pair<Rank, Rank>, std::deque<Message>> messages_;
  std::map<std::pair<Rank, Rank>, int> sent_;    // of messages_, so far
  std::map<std::pair<Rank, Rank>, int> posted_;  // receives, by source and destination
  std::map<std::pair<Rank, Rank>, std::deque<Offer>> offers_;
  std::map<std::pair<Rank, Rank>, std::deque<Clock>> done_;  // of writes to the second's memory by the first
};

}  // namespace

std::optional<std::string> verify_programs(const Schedule& schedule, Stream stream,
                                           std::span<const Program> programs, bool in_place) {
  if (schedule.ranks > kMostRanksOfPrograms) {
    usage_error("the programs of {} ranks are more than can be proved; verify the same shape with at most {}",
                schedule.ranks, kMostRanksOfPrograms);
  }
  try {
    Proof(schedule, stream, programs, in_place).run();
  } catch (const ProofFault& fault) {
    return fmt::format("lane {} chunk {}: {}", stream.lane, stream.chunk, fault.text);
  }
  return std::nullopt;
}

std::optional<std::string> verify_programs(const Schedule& schedule,
                                           const std::function<bool(Rank, Rank)>& reach, Partials partials) {
  std::vector<std::pair<const Lane*, Count>> proved;  // with so many elements
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const Lane& at = schedule.lanes[index(lane)];
    for (int chunk = 0; chunk < at.chunks; ++chunk) {
      const Stream stream{lane, chunk};
      const Count count = stream_slice(schedule, stream).count;
      const auto is_same = [&](const auto& other) {
        return other.second == count && other.first->dimensions == at.dimensions &&
               other.first->stages == at.stages;
      };
      if (count == 0 || std::ranges::any_of(proved, is_same)) continue;
      proved.emplace_back(&at, count);
      const std::vector<Program> programs = compile_all(schedule, stream, reach, partials);
      for (const bool in_place : {false, true}) {
        if (in_place && schedule.collective == Collective::alltoall) continue;
        if (auto fault = verify_programs(schedule, stream, programs, in_place)) return fault;
      }
    }
  }
  return std::nullopt;
}

}  // namespace polyring
