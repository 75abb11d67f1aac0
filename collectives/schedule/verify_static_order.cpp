#include "collectives/schedule/verify_static_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "collectives/schedule/proof_memory.hpp"
#include "collectives/schedule/verify_programs.hpp"

namespace polyring {
namespace {

using Entry = StaticOrder::Entry;
using Work = StaticOrder::Work;
using RankPair = std::pair<Rank, Rank>;

std::string text_of(const Work& work) {
  return fmt::format("lane {} chunk {}", work.stream.lane, work.stream.chunk);
}

/// What one rank lists, for itself.
class OwnOrder {
 public:
  OwnOrder(const StaticOrder& order, Rank rank)
      : order_(order), rank_(rank), works_(order.works.size()), last_(order.slots.size(), Entry::kNone) {}

  void check() {
    for (const Work& work : order_.works) check_memory(work);
    for (std::size_t i = 0; i < order_.entries.size(); ++i) check(i);
    for (std::size_t work = 0; work < works_.size(); ++work) {
      if (works_[work].next != program_of(work).steps.size())
        fail("rank {} does not list step {} of {}", rank_, works_[work].next, text_of(order_.works[work]));
    }
  }

 private:
  struct Progress {
    std::size_t next = 0;
    int round = -1;
  };

  const Program& program_of(std::size_t work) const { return order_.programs[order_.works[work].program]; }

  void check_memory(const Work& work) const {
    if (work.program >= order_.programs.size() || work.slot >= order_.slots.size())
      fail("rank {} has no program or no slot for {}", rank_, text_of(work));
    const Program& program = order_.programs[work.program];
    const StaticOrder::Slot& slot = order_.slots[work.slot];
    if (slot.staging < program.staging || (program.has_partials && slot.partials < work.slice.count) ||
        (program.has_work && slot.work < work.slice.count)) {
      fail("rank {}: slot {} is too small for {}", rank_, work.slot, text_of(work));
    }
  }

  void check(std::size_t i) {
    const Entry& entry = order_.entries[i];
    if (i > 0 && entry.round < order_.entries[i - 1].round)
      fail("rank {} lists round {} after round {}", rank_, entry.round, order_.entries[i - 1].round);
    if (entry.work >= works_.size()) fail("rank {} lists a step of no work, in round {}", rank_, entry.round);
    const Work& work = order_.works[entry.work];
    Progress& progress = works_[entry.work];
    const auto& steps = program_of(entry.work).steps;
    if (entry.step != progress.next || entry.step >= steps.size()) {
      fail("rank {} lists step {} of {} in round {}, and step {} is next", rank_, entry.step, text_of(work),
           entry.round, progress.next);
    }
    if (entry.step > 0 && entry.round == progress.round &&
        !(steps[entry.step].exchange && steps[entry.step - 1].exchange))
      fail("rank {} lists two steps of {} in round {}", rank_, text_of(work), entry.round);
    progress = {entry.step + 1, entry.round};
    if (entry.after != std::exchange(last_[work.slot], i)) {
      fail("rank {}: step {} of {} in round {} does not name the entry before it in slot {}", rank_,
           entry.step, text_of(work), entry.round, work.slot);
    }
  }

  const StaticOrder& order_;
  Rank rank_;
  std::vector<Progress> works_;
  std::vector<std::size_t> last_;  // by slot
};

/// What the ranks list for one round.
class RoundProof {
 public:
  RoundProof(std::span<const StaticOrder> ranks, int round) : ranks_(ranks), round_(round) {}

  void add(Rank rank, const Entry& entry) {
    const Program::Step& step = ranks_[index(rank)].step(entry);
    for (const Program::Send& send : step.sends)
      messages_[{rank, send.peer}].sent.push_back({entry.work, send.slice, send.from == Area::partial});
    for (const Program::Receive& receive : step.receives)
      messages_[{receive.peer, rank}].awaited.push_back({entry.work, receive.slice, receive.partial});
    if (!step.exchange) return;
    for (const Program::Partner& partner : step.exchange->partners)
      uses_[{rank, partner.peer}].push_back({exchanges_.size(), &partner});
    exchanges_.push_back({rank, entry.work, &*step.exchange});
  }

  void check() {
    for (const auto& [pair, messages] : messages_) check_messages(pair, messages);
    if (exchanges_.empty()) return;
    groups_.resize(exchanges_.size());
    std::iota(groups_.begin(), groups_.end(), std::size_t{0});
    for (const auto& [pair, uses] : uses_) check_exchanges(pair, uses);
    check_circles();
  }

 private:
  struct Message {
    std::size_t work;
    Slice slice;
    bool partial;
  };
  struct Messages {
    std::vector<Message> sent;
    std::vector<Message> awaited;
  };
  struct Exchange {
    Rank rank;
    std::size_t work;
    const Program::Exchange* what;
  };
  /// Of an exchange, with one partner.
  struct Use {
    std::size_t exchange;
    const Program::Partner* partner;
  };

  std::string text_of(std::size_t work) const { return polyring::text_of(ranks_.front().works[work]); }
  std::string text_of(const Message& message) const {
    return fmt::format("{}[{}, {}) of {}", message.partial ? "partial results " : "", message.slice.offset,
                       message.slice.end(), text_of(message.work));
  }

  void check_messages(RankPair pair, const Messages& messages) const {
    const auto& [sent, awaited] = messages;
    for (std::size_t i = 0; i < std::min(sent.size(), awaited.size()); ++i) {
      // An all-to-all moves elements; all else stays where it is.
      const bool same_slice = ranks_.front().collective == Collective::alltoall
                                  ? sent[i].slice.count == awaited[i].slice.count
                                  : sent[i].slice == awaited[i].slice;
      if (sent[i].work == awaited[i].work && same_slice && sent[i].partial == awaited[i].partial) continue;
      fail("round {}: rank {} sends rank {} {} as message {}, and it awaits {}", round_, pair.first,
           pair.second, text_of(sent[i]), i, text_of(awaited[i]));
    }
    if (sent.size() == awaited.size()) return;
    const Message& extra = sent.size() > awaited.size() ? sent[awaited.size()] : awaited[sent.size()];
    fail(
        "round {}: rank {} sends rank {} {} messages, and it awaits {}; the first without its other end is "
        "{}",
        round_, pair.first, pair.second, sent.size(), awaited.size(), text_of(extra));
  }

  void check_exchanges(RankPair pair, const std::vector<Use>& uses) {
    const auto found = uses_.find({pair.second, pair.first});
    const std::size_t others = found == uses_.end() ? 0 : found->second.size();
    if (uses.size() != others) {
      fail("round {}: rank {} has {} exchanges with rank {}, which has {} with it; one is of {}", round_,
           pair.first, uses.size(), pair.second, others, text_of(exchanges_[uses.front().exchange].work));
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const Exchange& own = exchanges_[uses[i].exchange];
      const Exchange& other = exchanges_[found->second[i].exchange];
      if (own.work != other.work) {
        fail("round {}: exchange {} of rank {} with rank {} is of {}, and there it is of {}", round_, i,
             pair.first, pair.second, text_of(own.work), text_of(other.work));
      }
      if (!fits(own, *uses[i].partner, *found->second[i].partner)) {
        fail("round {}: ranks {} and {} disagree on what one uses of the other's memory, in {}", round_,
             pair.first, pair.second, text_of(own.work));
      }
      groups_[group_of(uses[i].exchange)] = group_of(found->second[i].exchange);
    }
  }

  /// Whether the rank uses of its partner's memory what that lets it use.
  static bool fits(const Exchange& own, const Program::Partner& partner, const Program::Partner& lets) {
    const Program::Exchange& what = *own.what;
    const bool same_kind =
        (lets.gives_from == Area::partial) == (what.own_at == Area::partial) || !partner.read;
    return lets.gives == (partner.read ? what.own : Slice{}) &&
           lets.takes == (partner.write ? what.own : Slice{}) && same_kind;
  }

  /// Exchanges that wait for each other's partners are one group.
  std::size_t group_of(std::size_t exchange) const {
    while (groups_[exchange] != exchange) exchange = groups_[exchange];
    return exchange;
  }

  /// Ends groups whose exchanges are all next on their ranks, until all have ended.
  void check_circles() const {
    std::map<Rank, std::vector<std::size_t>> lists;  // exchanges of a rank
    std::map<std::size_t, int> missing;              // exchanges of a group that are not next yet
    for (std::size_t i = 0; i < exchanges_.size(); ++i) {
      lists[exchanges_[i].rank].push_back(i);
      ++missing[group_of(i)];
    }
    for (const auto& [rank, list] : lists) --missing[group_of(list.front())];
    std::map<Rank, std::size_t> ended;
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [rank, list] : lists) {
        std::size_t& at = ended[rank];
        while (at < list.size() && missing[group_of(list[at])] == 0) {
          moved = true;
          if (++at < list.size()) --missing[group_of(list[at])];
        }
      }
    }
    for (const auto& [rank, list] : lists) {
      if (ended[rank] == list.size()) continue;
      fail("round {}: rank {} waits for ever in an exchange of {}", round_, rank,
           text_of(exchanges_[list[ended[rank]]].work));
    }
  }

  std::span<const StaticOrder> ranks_;
  int round_;
  std::map<RankPair, Messages> messages_;      // by source and destination
  std::map<RankPair, std::vector<Use>> uses_;  // by rank and partner
  std::vector<Exchange> exchanges_;            // rank by rank
  std::vector<std::size_t> groups_;            // by exchange: itself, or another of its group
};

void check_works(std::span<const StaticOrder> ranks) {
  const auto same = [](const Work& a, const Work& b) {
    return a.stream == b.stream && a.slice == b.slice && a.slot == b.slot;
  };
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].collective == ranks[0].collective && ranks[rank].slots.size() == ranks[0].slots.size() &&
        std::ranges::equal(ranks[rank].works, ranks[0].works, same)) {
      continue;
    }
    fail("rank {} has other works or slots than rank 0", rank);
  }
}

/// No two works have one slot in the same round, or within each other's.
void check_slots(std::span<const StaticOrder> ranks) {
  struct Use {
    std::size_t slot;
    int first = std::numeric_limits<int>::max();
    int last = -1;
    std::size_t work;
  };
  const std::vector<Work>& works = ranks.front().works;
  std::vector<Use> uses;
  for (std::size_t work = 0; work < works.size(); ++work)
    uses.push_back({.slot = works[work].slot, .work = work});
  for (const StaticOrder& order : ranks) {
    for (const Entry& entry : order.entries) {
      Use& use = uses[entry.work];
      use.first = std::min(use.first, entry.round);
      use.last = std::max(use.last, entry.round);
    }
  }
  std::erase_if(uses, [](const Use& use) { return use.last < use.first; });
  std::ranges::sort(uses, {}, [](const Use& use) { return std::pair(use.slot, use.first); });
  for (std::size_t i = 1; i < uses.size(); ++i) {
    const Use& before = uses[i - 1];
    if (before.slot != uses[i].slot || before.last < uses[i].first) continue;
    fail("{} and {} have slot {} at once, in round {}", text_of(works[before.work]),
         text_of(works[uses[i].work]), before.slot, uses[i].first);
  }
}

void check_rounds(std::span<const StaticOrder> ranks) {
  std::vector<std::size_t> next(ranks.size());
  while (true) {
    int round = std::numeric_limits<int>::max();
    bool all_ended = true;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (next[rank] == ranks[rank].entries.size()) continue;
      all_ended = false;
      round = std::min(round, ranks[rank].entries[next[rank]].round);
    }
    if (all_ended) return;
    RoundProof proof(ranks, round);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::span<const Entry> entries = ranks[rank].round_from(next[rank]);
      if (entries.empty() || entries.front().round != round) continue;
      for (const Entry& entry : entries) proof.add(static_cast<Rank>(rank), entry);
      next[rank] += entries.size();
    }
    proof.check();
  }
}

void check_order(std::span<const StaticOrder> ranks) {
  if (ranks.empty()) return;
  check_works(ranks);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    OwnOrder(ranks[rank], static_cast<Rank>(rank)).check();
  check_slots(ranks);
  check_rounds(ranks);
}

void check_streams(const Schedule& schedule, std::span<const StaticOrder> ranks) {
  if (ranks.size() != index(schedule.ranks) || ranks.front().collective != schedule.collective)
    fail("there are orders of {} ranks for a schedule of {}, or of another collective", ranks.size(),
         schedule.ranks);
  const auto same = [&](const Work& work, Stream stream) {
    return work.stream == stream && work.slice == stream_slice(schedule, stream);
  };
  if (!std::ranges::equal(ranks.front().works, streams_of(schedule), same))
    fail("the works are not those of the schedule");
}

/// Works with equal programs are proved once.
std::optional<std::string> verify_contents(const Schedule& schedule, std::span<const StaticOrder> ranks) {
  std::vector<std::pair<const Work*, std::vector<Program>>> proved;
  for (const Work& work : ranks.front().works) {
    const std::size_t at = static_cast<std::size_t>(&work - ranks.front().works.data());
    std::vector<Program> programs;
    for (const StaticOrder& order : ranks) programs.push_back(order.programs[order.works[at].program]);
    const auto is_same = [&](const auto& other) {
      const Lane& lane = schedule.lanes[index(work.stream.lane)];
      const Lane& proved_lane = schedule.lanes[index(other.first->stream.lane)];
      return other.first->slice.count == work.slice.count && proved_lane.dimensions == lane.dimensions &&
             proved_lane.stages == lane.stages && other.second == programs;
    };
    if (std::ranges::any_of(proved, is_same)) continue;
    for (const bool in_place : {false, true}) {
      if (in_place && schedule.collective == Collective::alltoall) continue;
      if (auto fault = verify_programs(schedule, work.stream, programs, in_place)) return fault;
    }
    proved.emplace_back(&work, std::move(programs));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> verify_static_order(std::span<const StaticOrder> ranks) {
  try {
    check_order(ranks);
  } catch (const ProofFault& fault) {
    return fault.text;
  }
  return std::nullopt;
}

std::optional<std::string> verify_static_order(const Schedule& schedule, std::span<const StaticOrder> ranks) {
  try {
    check_streams(schedule, ranks);
    check_order(ranks);
  } catch (const ProofFault& fault) {
    return fault.text;
  }
  return verify_contents(schedule, ranks);
}

}  // namespace polyring
