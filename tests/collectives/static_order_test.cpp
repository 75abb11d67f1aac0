#include "collectives/schedule/static_order.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/verify_programs.hpp"
#include "collectives/schedule/verify_static_order.hpp"
#include "tests/collectives/sweep.hpp"
#include "tests/sanitized.hpp"

namespace polyring {
namespace {

using testing::collectives_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::plans_of;
using Entry = StaticOrder::Entry;
using Orders = std::vector<StaticOrder>;

constexpr auto kNone = Entry::kNone;

/// How an order is made of a schedule.
struct Way {
  std::size_t reach;  // an index of testing::reaches()
  Partials partials;
  OrderOptions options;
};

/// The i-th of the twelve for a reach.
Way way(std::size_t reach, std::size_t i) {
  constexpr std::array kWindows{1, 2, 4};
  return {reach, i % 2 == 0 ? Partials::in_output : Partials::apart, {kWindows[i % 3], i / 2 % 2 == 0}};
}
constexpr std::size_t kWays = 12;

std::string to_text(const Way& way) {
  return fmt::format("of ranks that reach {}{}, window {}{}", testing::reaches()[way.reach].name,
                     way.partials == Partials::apart ? ", partials apart" : "", way.options.window,
                     way.options.alternate ? ", alternate" : "");
}

Orders orders_of(const Schedule& schedule, const Way& way) {
  return order_all(schedule, testing::reaches()[way.reach].reach, way.partials, way.options);
}

/// The slots of each work on all ranks, and no two works in one of them at once; never more than `window` of
/// a lane.
void check_slots(const Orders& orders, int window) {
  for (const StaticOrder& order : orders) {
    std::map<std::pair<int, std::size_t>, std::size_t> holders;  // by round and slot
    std::map<std::size_t, std::pair<int, int>> rounds;           // first and last, by work
    for (const Entry& entry : order.entries) {
      const auto [at, is_new] = rounds.try_emplace(entry.work, entry.round, entry.round);
      if (!is_new) at->second.second = entry.round;
    }
    for (const auto& [work, first_and_last] : rounds) {
      for (int round = first_and_last.first; round <= first_and_last.second; ++round) {
        const bool is_new = holders.try_emplace({round, order.works[work].slot}, work).second;
        ASSERT_TRUE(is_new) << "slot " << order.works[work].slot << " in round " << round;
      }
    }
    std::map<int, std::set<std::size_t>> slots;  // by lane
    for (const StaticOrder::Work& work : order.works) slots[work.stream.lane].insert(work.slot);
    for (const auto& [lane, of_lane] : slots) ASSERT_LE(of_lane.size(), index(window)) << lane;
  }
}

/// Even and odd chunks never share a round, and an entry's round is not the next after that of the one it
/// needs: there is a round in between, beside which its folds run.
void check_turns(const Schedule& schedule, const Orders& orders) {
  for (const StaticOrder& order : orders) {
    for (const Entry& entry : order.entries) {
      const Stream stream = order.works[entry.work].stream;
      if (schedule.lanes[index(stream.lane)].chunks == 1) continue;
      ASSERT_EQ(entry.round % 2, stream.chunk % 2);
      if (entry.after == kNone) continue;
      const Entry& before = order.entries[entry.after];
      ASSERT_TRUE(entry.round - before.round >= 2 || order.step(before).exchange);
    }
  }
}

class EveryOrder : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryOrder, ::testing::ValuesIn(testing::algorithm_names()),
                         [](const auto& row) { return testing::identifier(row.param); });

Schedule schedule_of(const Plan& plan, int ranks, Collective collective, int blocks) {
  const Count count = blocks * ranks + (collective == Collective::allreduce ? 1 : 0);
  return make_schedule(plan, ranks, count, 4, collective);
}

void expect_proved(const Schedule& schedule, const Plan& plan, const Way& way) {
  const Orders orders = orders_of(schedule, way);
  const auto fault = verify_static_order(schedule, orders);
  ASSERT_EQ(fault, std::nullopt) << to_text(schedule.collective) << " by " << to_text(plan) << " of "
                                 << schedule.ranks << " ranks " << to_text(way) << ": " << *fault;
  check_slots(orders, way.options.window);
  if (way.options.alternate && way.options.window % 2 == 0) check_turns(schedule, orders);
}

/// Chunks of a lane are seven where they are small. Up to three ranks in all ways, and more ranks in some for
/// each reach, which take turns from shape to shape.
TEST_P(EveryOrder, IsProved) {
  std::size_t turn = 0;
  for (int ranks = 1; ranks <= (kSanitized ? 4 : 6); ++ranks) {
    const std::size_t apart = kSanitized ? 6 : ranks > 3 ? 4 : 1;
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Collective collective : collectives_of(plan)) {
        const Schedule schedule = schedule_of(plan, ranks, collective, 20);
        ++turn;
        for (std::size_t reach = 0; reach < testing::reaches().size(); ++reach) {
          for (std::size_t i = 0; i < kWays; i += apart)
            ASSERT_NO_FATAL_FAILURE(expect_proved(schedule, plan, way(reach, turn + reach + i)));
        }
      }
    }
  }
}

TEST(StaticOrder, OfMoreRanksIsProved) {
  const Bytes chunk{8 * 4};
  const std::vector<Plan> plans{{"multi-ring", {8}, {}, 2, chunk},
                                {"multi-ring", {2, 4}, {"direct", "ring"}, 2, chunk},
                                {"multi-ring", {2, 2, 2}, {"direct", "pairwise", "direct"}, 1, chunk},
                                {"multi-ring", {3, 4}, {"direct", "halving"}, 2, chunk},
                                {"multi-ring", {6, 2}, {"ring", "direct"}, 1, chunk},
                                {"halving-doubling", {12}, {}, 1, chunk},
                                {"chain-tree", {3, 4}, {}, 1, chunk}};
  std::size_t turn = 0;
  for (const Plan& plan : plans) {
    for (const Collective collective : collectives_of(plan)) {
      const Schedule schedule = schedule_of(plan, plan.ranks(), collective, 10);
      for (std::size_t reach = 0; reach < testing::reaches().size(); ++reach)
        ASSERT_NO_FATAL_FAILURE(expect_proved(schedule, plan, way(reach, ++turn)));
    }
  }
}

/// Of rank 0 of two: `0:0.1` is step 1 of chunk 0, in round 0.
std::string listed(Count count, OrderOptions options) {
  const Schedule schedule = make_schedule({"ring", {2}, {}, 1, Bytes{16}}, 2, count, 4);
  const StaticOrder order = order_of(
      schedule, 0, [](Rank) { return false; }, Partials::in_output, options);
  std::string text;
  for (const Entry& entry : order.entries) {
    text += fmt::format("{}{}:{}.{}", text.empty() ? "" : " ", entry.round,
                        order.works[entry.work].stream.chunk, entry.step);
  }
  return text;
}

TEST(StaticOrder, ListsChunksOfTwoSteps) {
  EXPECT_EQ(listed(12, {1, true}), "0:0.0 1:0.1 2:1.0 3:1.1 4:2.0 5:2.1");
  EXPECT_EQ(listed(12, {2, false}), "0:0.0 1:0.1 1:1.0 2:1.1 2:2.0 3:2.1");
  EXPECT_EQ(listed(12, {2, true}), "0:0.0 1:1.0 2:0.1 3:1.1 4:2.0 6:2.1");
  EXPECT_EQ(listed(16, {4, true}), "0:0.0 1:1.0 2:0.1 2:2.0 3:1.1 3:3.0 4:2.1 5:3.1");
  EXPECT_EQ(listed(4, {2, true}), "0:0.0 1:0.1");
}

TEST(StaticOrder, NamesTheEntryBeforeInTheSlot) {
  const Schedule schedule = make_schedule({"ring", {2}, {}, 1, Bytes{16}}, 2, 12, 4);
  const StaticOrder order = order_of(schedule, 0, [](Rank) { return false; }, Partials::in_output, {2, true});
  std::vector<std::size_t> after;
  for (const Entry& entry : order.entries) after.push_back(entry.after);
  EXPECT_THAT(after, ElementsAre(kNone, kNone, 0, 1, 2, 4));
}

TEST(StaticOrder, OfNoWindowIsRefused) {
  const Schedule schedule = make_schedule({"ring", {2}}, 2, 12, 4);
  EXPECT_THROW(order_all(schedule, nullptr, Partials::in_output, {0, true}), Error);
}

TEST(StaticOrder, OfMoreRanksThanContentsCanBeProvedIsProvedWithoutThem) {
  constexpr int kRanks = kMostRanksOfPrograms + 2;
  const Schedule schedule = make_schedule({"halving-doubling", {kRanks}, {}, 1, Bytes{800}}, kRanks, 600, 4);
  const Orders orders = order_all(schedule, nullptr, Partials::in_output);
  EXPECT_EQ(verify_static_order(orders), std::nullopt);
  EXPECT_THROW(verify_static_order(schedule, orders), Error);
}

TEST(StaticOrder, OfAnotherScheduleIsNoProof) {
  const Schedule schedule = make_schedule({"ring", {2}}, 2, 12, 4);
  const auto fault_of = [&](const Schedule& other) {
    return verify_static_order(schedule, order_all(other, nullptr, Partials::in_output)).value_or("");
  };
  EXPECT_THAT(fault_of(make_schedule({"ring", {3}}, 3, 12, 4)), HasSubstr("orders of 3 ranks"));
  EXPECT_THAT(fault_of(make_schedule({"ring", {2}}, 2, 12, 4, Collective::allgather)),
              HasSubstr("collective"));
  EXPECT_THAT(fault_of(make_schedule({"ring", {2}}, 2, 10, 4)), HasSubstr("not those of the schedule"));
  EXPECT_EQ(fault_of(schedule), "");
}

TEST(StaticOrder, FaultsNameRoundRanksAndChunk) {
  const Schedule schedule = make_schedule({"ring", {2}, {}, 2, Bytes{16}}, 2, 16, 4);
  Orders orders = order_all(schedule, nullptr, Partials::in_output, {1, true});
  ASSERT_EQ(verify_static_order(orders), std::nullopt);
  std::swap(orders[1].entries[2], orders[1].entries[3]);
  orders[1].link();
  EXPECT_EQ(
      verify_static_order(orders),
      "round 1: rank 0 sends rank 1 [0, 2) of lane 0 chunk 0 as message 0, and it awaits [2, 4) of lane 1 "
      "chunk 0");
}

/// Rank r does an exchange with rank r + 1 and one with rank r − 1; with each its list begins with the first.
Orders exchanges_of_three() {
  const auto with = [](Rank peer) {
    Program::Exchange exchange{
        {{peer, {0, 1}, Area::input, {}, true, false}}, {0, 1}, Area::input, Area::output, true, true};
    Program program{};
    program.steps.emplace_back().exchange = std::move(exchange);
    program.rounds = 1;
    return program;
  };
  Orders orders(3);
  for (Rank rank = 0; rank < 3; ++rank) {
    StaticOrder& order = orders[index(rank)];
    order.programs = {with((rank + 1) % 3), with((rank + 2) % 3), Program{}};
    order.works.resize(3);  // work w is of ranks w and w + 1
    for (int work = 0; work < 3; ++work) {
      const std::size_t program = work == rank ? 0 : (work + 1) % 3 == rank ? 1 : 2;
      order.works[index(work)] = {{work, 0}, {work, 1}, program, index(work)};
    }
    order.slots.resize(3);
    order.entries = {{0, index(rank), 0}, {0, index((rank + 2) % 3), 0}};
    order.link();
  }
  return orders;
}

TEST(StaticOrder, ExchangesInACircleAreNoProof) {
  Orders orders = exchanges_of_three();
  EXPECT_EQ(verify_static_order(orders), "round 0: rank 0 waits for ever in an exchange of lane 0 chunk 0");
  std::swap(orders[0].entries[0], orders[0].entries[1]);
  orders[0].link();
  EXPECT_EQ(verify_static_order(orders), std::nullopt);
}

/// An iterator of an entry.
std::vector<Entry>::iterator at(std::vector<Entry>& entries, std::size_t i) {
  return entries.begin() + static_cast<std::ptrdiff_t>(i);
}

/// A set of orders with one thing changed.
struct Mutant {
  std::string what;
  Orders orders;
};

/// Faults that orders can have although each program is right.
class Mutator {
 public:
  explicit Mutator(const Orders& orders) : orders_(orders) {}

  std::vector<Mutant> all() {
    for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
      for (std::size_t i = 0; i < orders_[rank].entries.size(); ++i) mutate_entry(rank, i);
      mutate_programs(rank);
      mutate_slots(rank);
    }
    mutate_works();
    mutate_all_ranks();
    return std::move(mutants_);
  }

 private:
  void mutate(const std::string& what, const std::function<void(Orders&)>& change) {
    mutants_.push_back({what, orders_});
    change(mutants_.back().orders);
  }
  /// Of a rank's entries, which then name each other as they should.
  void mutate_list(const std::string& what, std::size_t rank,
                   const std::function<void(std::vector<Entry>&)>& change) {
    mutate(what, [&](Orders& orders) {
      change(orders[rank].entries);
      orders[rank].link();
    });
  }

  static std::set<Rank> peers(const Program::Step& step) {
    std::set<Rank> peers;
    for (const auto& send : step.sends) peers.insert(send.peer);
    for (const auto& receive : step.receives) peers.insert(receive.peer);
    if (!step.exchange) return peers;
    for (const auto& partner : step.exchange->partners) peers.insert(partner.peer);
    return peers;
  }

  /// Whether a rank's peer can tell in which order two of its steps come.
  static bool share_a_peer(const Program::Step& a, const Program::Step& b) {
    const auto share = [](const auto& some, const auto& others) {
      return std::ranges::any_of(some, [&](const auto& one) {
        return std::ranges::any_of(others, [&](const auto& other) { return one.peer == other.peer; });
      });
    };
    return share(a.sends, b.sends) || share(a.receives, b.receives) ||
           (a.exchange && b.exchange && share(a.exchange->partners, b.exchange->partners));
  }

  void mutate_entry(std::size_t rank, std::size_t i) {
    const StaticOrder& order = orders_[rank];
    const Entry& entry = order.entries[i];
    mutate_list("entry dropped", rank, [=](auto& entries) { entries.erase(at(entries, i)); });
    mutate_list("entry twice", rank, [=](auto& entries) { entries.insert(at(entries, i), entries[i]); });
    if (entry.after != kNone)
      mutate("entry after none", [=](Orders& orders) { orders[rank].entries[i].after = kNone; });
    if (!peers(order.step(entry)).empty()) {
      mutate_list("a round later", rank, [=](auto& entries) { move(entries, i, 1); });
      if (entry.round > 0) mutate_list("a round earlier", rank, [=](auto& entries) { move(entries, i, -1); });
    }
    for (const int later : {0, 1}) {
      const std::size_t other = next_with_same_peer(order, i, later);
      if (other == order.entries.size()) continue;
      mutate_list(later == 0 ? "swapped in a round" : "swapped between rounds", rank, [=](auto& entries) {
        std::swap(entries[i], entries[other]);
        std::swap(entries[i].round, entries[other].round);
      });
    }
  }

  /// The next entry of another work, so many rounds later, that shares a peer with the entry.
  static std::size_t next_with_same_peer(const StaticOrder& order, std::size_t i, int later) {
    const Entry& entry = order.entries[i];
    std::size_t other = i + 1;
    for (; other < order.entries.size(); ++other) {
      const Entry& next = order.entries[other];
      if (next.round == entry.round + later && next.work != entry.work &&
          share_a_peer(order.step(entry), order.step(next))) {
        break;
      }
    }
    return other;
  }

  static void move(std::vector<Entry>& entries, std::size_t i, int rounds) {
    entries[i].round += rounds;
    sort(entries);
  }
  static void sort(std::vector<Entry>& entries) {
    std::ranges::sort(entries, {},
                      [](const Entry& entry) { return std::tuple(entry.round, entry.work, entry.step); });
  }

  void mutate_programs(std::size_t rank) {
    const auto another = [&](Rank peer) { return (peer + 1) % static_cast<Rank>(orders_.size()); };
    for (std::size_t program = 0; program < orders_[rank].programs.size(); ++program) {
      const auto& steps = orders_[rank].programs[program].steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto change = [&](const std::string& what, const std::function<void(Program::Step&)>& how) {
          mutate(what, [=](Orders& orders) { how(orders[rank].programs[program].steps[i]); });
        };
        for (std::size_t k = 0; k < steps[i].sends.size(); ++k) {
          change("send to another", [=](auto& step) { step.sends[k].peer = another(step.sends[k].peer); });
          change("send of fewer elements", [=](auto& step) { --step.sends[k].slice.count; });
          change("send of other elements", [=](auto& step) { ++step.sends[k].slice.offset; });
          if (k > 0 && steps[i].sends[k].peer == steps[i].sends[k - 1].peer)
            change("sends swapped", [=](auto& step) { std::swap(step.sends[k], step.sends[k - 1]); });
        }
        for (std::size_t k = 0; k < steps[i].receives.size(); ++k) {
          change("receive from another",
                 [=](auto& step) { step.receives[k].peer = another(step.receives[k].peer); });
          change("receive of the other kind",
                 [=](auto& step) { step.receives[k].partial = !step.receives[k].partial; });
        }
        if (!steps[i].exchange) continue;
        for (std::size_t k = 0; k < steps[i].exchange->partners.size(); ++k) {
          change("exchange with another", [=](auto& step) {
            step.exchange->partners[k].peer = another(step.exchange->partners[k].peer);
          });
          change("exchange that reads or not",
                 [=](auto& step) { step.exchange->partners[k].read = !step.exchange->partners[k].read; });
        }
      }
    }
  }

  void mutate_slots(std::size_t rank) {
    const std::vector<StaticOrder::Slot>& slots = orders_[rank].slots;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot].staging > 0)
        mutate("less staging", [=](Orders& orders) { --orders[rank].slots[slot].staging; });
      if (slots[slot].partials > 0)
        mutate("less room for partial results", [=](Orders& orders) { --orders[rank].slots[slot].partials; });
      if (slots[slot].work > 0)
        mutate("a smaller work area", [=](Orders& orders) { --orders[rank].slots[slot].work; });
    }
  }

  void mutate_works() {
    const std::vector<StaticOrder::Work>& works = orders_.front().works;
    for (std::size_t a = 0; a < works.size(); ++a) {
      for (std::size_t b = a + 1; b < works.size(); ++b) {
        if (works[a].slot == works[b].slot || !are_together(a, b)) continue;
        mutate("a slot shared", [=](Orders& orders) { share(orders, a, b); });
        mutate("a slot shared on one rank", [=](Orders& orders) {
          orders.back().works[b].slot = orders.back().works[a].slot;
          orders.back().link();
        });
      }
    }
  }

  /// Whether a work has rounds between those of another, on any ranks.
  bool are_together(std::size_t a, std::size_t b) const {
    const auto rounds = [&](std::size_t work) {
      std::pair<int, int> found{1 << 30, -1};
      for (const StaticOrder& order : orders_) {
        for (const Entry& entry : order.entries) {
          if (entry.work != work) continue;
          found = {std::min(found.first, entry.round), std::max(found.second, entry.round)};
        }
      }
      return found;
    };
    const auto [of_a, of_b] = std::pair(rounds(a), rounds(b));
    return of_a.second >= of_b.first && of_b.second >= of_a.first;
  }

  static void share(Orders& orders, std::size_t a, std::size_t b) {
    for (StaticOrder& order : orders) {
      order.works[b].slot = order.works[a].slot;
      for (StaticOrder::Slot& slot : order.slots) slot = {1000, 1000, 1000};
      order.link();
    }
  }

  /// The same on all ranks, so that all ends of messages still fit.
  void mutate_all_ranks() {
    const auto change_all = [&](const std::string& what, const std::function<void(Entry&)>& how) {
      mutate(what, [&](Orders& orders) {
        for (StaticOrder& order : orders) {
          for (Entry& entry : order.entries) how(entry);
          sort(order.entries);
          order.link();
        }
      });
    };
    if (any_two_steps([](const auto& a, const auto& b) { return !a.exchange || !b.exchange; }))
      change_all("no rounds", [](Entry& entry) { entry.round = 0; });
    if (any_two_steps([](const auto& a, const auto& b) { return a.round != b.round; }))
      change_all("rounds backwards", [](Entry& entry) { entry.round = 1000 - entry.round; });
  }

  template <typename Condition>
  bool any_two_steps(const Condition& condition) const {
    return std::ranges::any_of(orders_, [&](const StaticOrder& order) {
      return std::ranges::any_of(order.programs, [&](const Program& program) {
        return std::ranges::adjacent_find(program.steps, condition) != program.steps.end();
      });
    });
  }

  const Orders& orders_;
  std::vector<Mutant> mutants_;
};

/// With reaches and ways that take turns from shape to shape.
TEST_P(EveryOrder, EveryMutantIsCaught) {
  std::size_t turn = 0;
  for (int ranks = 2; ranks <= (kSanitized ? 3 : 4); ++ranks) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Collective collective : collectives_of(plan)) {
        const Schedule schedule = schedule_of(plan, ranks, collective, 9);
        ++turn;
        const Way with = way(turn % testing::reaches().size(), turn / 4);
        for (const Mutant& mutant : Mutator(orders_of(schedule, with)).all()) {
          EXPECT_TRUE(verify_static_order(schedule, mutant.orders))
              << mutant.what << ": " << to_text(collective) << " by " << to_text(plan) << " of " << ranks
              << " ranks " << to_text(with);
        }
      }
    }
  }
}

}  // namespace
}  // namespace polyring
