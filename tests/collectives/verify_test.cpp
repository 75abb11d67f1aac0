#include "collectives/schedule/verify.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/sweep.hpp"
#include "tests/sanitized.hpp"

namespace polyring {
namespace {

using testing::awkward_counts;
using testing::plans_of;

class EveryAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryAlgorithm, IsProvedForEveryRankCountSizeAndFactoring) {
  // Under a sanitizer all of them take minutes; TheDdlShapeOf256RanksIsProved has many ranks there, too.
  std::vector<int> rank_counts = kSanitized ? std::vector{16} : std::vector{27, 32, 48, 64};
  for (int ranks = 1; ranks <= (kSanitized ? 9 : 16); ++ranks) rank_counts.push_back(ranks);
  for (const int ranks : rank_counts) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Count count : awkward_counts(ranks)) {
        const auto fault = verify(make_schedule(plan, ranks, count, 4));
        ASSERT_EQ(fault, std::nullopt) << to_text(plan) << " of " << count << " elements: " << *fault;
      }
    }
  }
}

/// All transfers of a schedule, each once.
std::vector<Transfer> transfers_of(const Schedule& schedule) {
  std::vector<Transfer> transfers;
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const Lane& at = schedule.lanes[static_cast<std::size_t>(lane)];
    for (int chunk = 0; chunk < at.chunks; ++chunk) {
      for (int stage = 0; stage < stage_count(at); ++stage) {
        for (int step = 0; step < step_count(at, stage); ++step) {
          for (Rank rank = 0; rank < schedule.ranks; ++rank) {
            append_sends(schedule, {lane, chunk}, stage, step, rank, transfers);
          }
        }
      }
    }
  }
  return transfers;
}

/// The independent reference: follows the transfers with plain counters, how often each rank's element is in
/// each rank's sum, and says whether all are 1 in the end.
bool sums_right(const Schedule& schedule, const std::vector<Transfer>& transfers) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  const auto count = static_cast<std::size_t>(schedule.count);
  std::vector<std::vector<std::vector<int>>> held(ranks, std::vector(count, std::vector<int>(ranks)));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t element = 0; element < count; ++element) held[rank][element][rank] = 1;
  }
  auto before = held;  // the step
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    const Transfer& transfer = transfers[t];
    const auto step = [](const Transfer& at) { return std::tuple(at.stream, at.stage, at.step); };
    if (t > 0 && step(transfer) != step(transfers[t - 1])) before = held;
    for (Count i = transfer.slice.offset; i < transfer.slice.end(); ++i) {
      const auto element = static_cast<std::size_t>(i);
      const std::vector<int>& from = before[static_cast<std::size_t>(transfer.source)][element];
      std::vector<int>& to = held[static_cast<std::size_t>(transfer.destination)][element];
      if (transfer.combine == Combine::copy) {
        to = from;
      } else {
        std::transform(to.begin(), to.end(), from.begin(), to.begin(), std::plus<>());
      }
    }
  }
  const std::vector<int> once(ranks, 1);
  return std::all_of(held.begin(), held.end(), [&](const auto& of_rank) {
    return std::all_of(of_rank.begin(), of_rank.end(), [&](const auto& element) { return element == once; });
  });
}

struct Mutation {
  const char* name;
  bool may_be_harmless;  // a copy from another rank that is complete by then is as good
  void (*mutate)(Transfer&, int ranks);
};

constexpr Mutation kMutations[]{
    {"dropped", false, [](Transfer& t, int) { t.slice.count = 0; }},
    {"shortened", false, [](Transfer& t, int) { --t.slice.count; }},
    {"other operation", false,
     [](Transfer& t, int) { t.combine = t.combine == Combine::copy ? Combine::reduce : Combine::copy; }},
    {"other destination", true, [](Transfer& t, int ranks) { t.destination = (t.destination + 1) % ranks; }},
    {"other source", true, [](Transfer& t, int ranks) { t.source = (t.source + 1) % ranks; }},
};

/// The transfers with one of them mutated, where verify() accepts that; else none.
std::optional<std::vector<Transfer>> accepted(const Schedule& schedule,
                                              const std::vector<Transfer>& transfers, std::size_t target,
                                              const Mutation& mutation) {
  ProofOptions options{[&](Transfer& transfer) {
    if (transfer == transfers[target]) mutation.mutate(transfer, schedule.ranks);
  }};
  if (target % 2 == 1) options.most_words = 1;  // in as many batches as can be
  if (verify(schedule, options)) return std::nullopt;
  std::vector<Transfer> mutant = transfers;
  mutation.mutate(mutant[target], schedule.ranks);
  return mutant;
}

std::string described(const Schedule& schedule, const Plan& plan, const Mutation& mutation,
                      const Transfer& target) {
  return fmt::format("{} by {}: {} transfer {} -> {} of stage {} step {} passes unseen",
                     to_text(schedule.collective), to_text(plan), mutation.name, target.source,
                     target.destination, target.stage, target.step);
}

TEST_P(EveryAlgorithm, EveryMutantOfOneTransferIsCaught) {
  for (const int ranks : kSanitized ? std::vector{2, 3, 4} : std::vector{2, 3, 4, 6, 8}) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      const Schedule schedule = make_schedule(plan, ranks, 2 * ranks + 1, 4);
      const std::vector<Transfer> transfers = transfers_of(schedule);
      ASSERT_TRUE(sums_right(schedule, transfers));
      for (std::size_t target = 0; target < transfers.size(); ++target) {
        for (const Mutation& mutation : kMutations) {
          const auto mutant = accepted(schedule, transfers, target, mutation);
          if (!mutant) continue;
          EXPECT_TRUE(mutation.may_be_harmless && sums_right(schedule, *mutant))
              << described(schedule, plan, mutation, transfers[target]);
        }
      }
    }
  }
}

TEST_P(EveryAlgorithm, BothEndsOfEveryTransferAgree) {
  for (const Plan& plan : plans_of(find_algorithm(GetParam()), 6, 4)) {
    const Schedule schedule = make_schedule(plan, 6, 25, 4);
    const auto fault = verify(schedule, {[first = true](Transfer& transfer) mutable {
                                // Only the sender's view is seen first: changing it alone must be noticed.
                                if (first) transfer.slice.offset += 1;
                                first = false;
                              }});
    ASSERT_NE(fault, std::nullopt);
    EXPECT_NE(fault->find("only one end"), std::string::npos) << *fault;
  }
}

/// A receive that nobody sends would wait for ever, were it the last one of its step.
TEST_P(EveryAlgorithm, EveryReceiveHasItsSend) {
  for (const Plan& plan : plans_of(find_algorithm(GetParam()), 4, 4)) {
    const Schedule schedule = make_schedule(plan, 4, 17, 4);
    for (const Transfer& target : transfers_of(schedule)) {
      const auto fault = verify(schedule, {[&, first = true](Transfer& transfer) mutable {
                                  if (transfer != target) return;
                                  if (first) transfer.slice.count = 0;  // as the sender sees it
                                  first = false;
                                }});
      ASSERT_NE(fault, std::nullopt);
      EXPECT_THAT(*fault, ::testing::HasSubstr("only one end"));
    }
  }
}

TEST_P(EveryAlgorithm, IsProvedForEveryCollectiveThatItsPatternsCanMake) {
  std::vector<int> rank_counts{16, 27, 32};
  for (int ranks = 1; ranks <= 12; ++ranks) rank_counts.push_back(ranks);
  for (const int ranks : rank_counts) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Collective collective : testing::block_collectives_of(plan)) {
        for (const Count block : testing::awkward_blocks()) {
          const auto fault = verify(make_schedule(plan, ranks, block * ranks, 4, collective));
          ASSERT_EQ(fault, std::nullopt) << to_text(collective) << " by " << to_text(plan) << " of blocks of "
                                         << block << ": " << *fault;
        }
      }
    }
  }
}

/// Where a value comes from: a rank, and the place in its payload.
using Origin = std::pair<Rank, Count>;
/// What each rank has of each element of the schedule: what was added up there, in no order.
using Contents = std::vector<std::vector<std::multiset<Origin>>>;

/// The independent reference for collectives of blocks: follows the transfers, and says whether each rank
/// ends with what MPI and nccl-tests define.
bool blocks_right(const Schedule& schedule, const std::vector<Transfer>& transfers) {
  const auto at = [](auto number) { return static_cast<std::size_t>(number); };
  std::vector<Count> place(at(schedule.count));  // in the payload
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const std::vector<Rank> owners = block_owners(schedule.lanes[at(lane)], schedule.ranks);
    for (int chunk = 0; chunk < schedule.lanes[at(lane)].chunks; ++chunk) {
      const Slice all = stream_slice(schedule, {lane, chunk});
      for (Count i = 0; i < all.count; ++i)
        place[at(all.offset + i)] = payload_offset(schedule, {lane, chunk}, owners, i, false);
    }
  }
  const Count block = schedule.count / schedule.ranks;
  Contents held(at(schedule.ranks), std::vector<std::multiset<Origin>>(at(schedule.count)));
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    for (Count element = 0; element < schedule.count; ++element) {
      const Count there = place[at(element)];
      if (schedule.collective != Collective::allgather || there / block == rank)
        held[at(rank)][at(element)] = {{rank, there}};
    }
  }
  Contents before = held;
  for (std::size_t t = 0; t < transfers.size(); ++t) {
    const Transfer& transfer = transfers[t];
    const bool exchanges = schedule.collective == Collective::alltoall;
    const auto moment = [&](const Transfer& of) {
      return std::tuple(of.stream, of.stage, exchanges ? 0 : of.step);
    };
    if (t > 0 && moment(transfer) != moment(transfers[t - 1])) before = held;
    for (Count i = transfer.slice.offset; i < transfer.slice.end(); ++i) {
      const auto& from = before[at(transfer.source)][at(i)];
      auto& to = held[at(transfer.destination)][at(i + transfer.moved)];
      if (transfer.combine == Combine::copy) {
        to = from;
      } else {
        to.insert(from.begin(), from.end());
      }
    }
  }
  for (Rank rank = 0; rank < schedule.ranks; ++rank) {
    for (Count element = 0; element < schedule.count; ++element) {
      const Count there = place[at(element)];
      std::multiset<Origin> wanted;
      switch (schedule.collective) {
        case Collective::reduce_scatter:
          if (there / block != rank) continue;
          for (Rank other = 0; other < schedule.ranks; ++other) wanted.insert({other, there});
          break;
        case Collective::allgather:
          wanted = {{static_cast<Rank>(there / block), there}};
          break;
        default:
          wanted = {{static_cast<Rank>(there / block), rank * block + there % block}};
      }
      if (held[at(rank)][at(element)] != wanted) return false;
    }
  }
  return true;
}

TEST_P(EveryAlgorithm, EveryMutantOfOneTransferOfBlocksIsCaught) {
  for (const int ranks : {2, 3, 4, 6}) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Collective collective : testing::block_collectives_of(plan)) {
        const Schedule schedule = make_schedule(plan, ranks, 2 * ranks, 4, collective);
        const std::vector<Transfer> transfers = transfers_of(schedule);
        ASSERT_TRUE(blocks_right(schedule, transfers)) << to_text(collective) << " by " << to_text(plan);
        std::vector<Mutation> mutations(std::begin(kMutations), std::end(kMutations));
        mutations.push_back({"other place", false, [](Transfer& t, int) { t.moved += 1; }});
        mutations.push_back({"other elements", false, [](Transfer& t, int) { t.slice.offset += 1; }});
        for (std::size_t target = 0; target < transfers.size(); ++target) {
          for (const Mutation& mutation : mutations) {
            const auto mutant = accepted(schedule, transfers, target, mutation);
            if (!mutant) continue;
            EXPECT_TRUE(blocks_right(schedule, *mutant))
                << described(schedule, plan, mutation, transfers[target]);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAlgorithm, ::testing::ValuesIn(testing::algorithm_names()),
                         [](const auto& row) { return testing::identifier(row.param); });

TEST(Verify, CountsBeyondTwoToThe31AreProved) {
  for (const Algorithm& algorithm : algorithms()) {
    const Plan plan{std::string(algorithm.name), {4}, {}, 2, {}};
    EXPECT_EQ(verify(make_schedule(plan, 4, (Count{1} << 33) + 5, 4)), std::nullopt) << algorithm.name;
  }
}

TEST(Verify, TheDdlShapeOf256RanksIsProved) {
  const Plan plan{"multi-ring", {4, 8, 8}, {}, 2, {}};
  EXPECT_EQ(verify(make_schedule(plan, 256, 1000003, 4)), std::nullopt);
}

TEST(Verify, MoreRanksOfAnAlltoallThanCanBeProvedAreRefused) {
  const int most = kMostVerifiableRanksOfAlltoall;
  const auto schedule_of = [](int ranks) {
    return make_schedule({"direct", {ranks}}, ranks, ranks, 4, Collective::alltoall);
  };
  EXPECT_EQ(verify(schedule_of(64)), std::nullopt);
  EXPECT_THROW(verify(schedule_of(most + 1)), Error);
}

TEST(Verify, SwitchesThatAddUpAreFollowed) {
  for (const auto& patterns :
       std::vector<std::vector<std::string>>{{"ring"}, {"direct"}, {"star"}, {"halving"}}) {
    const Schedule of_host = make_schedule({"multi-ring", {4}, patterns, 2, {}}, 4, 19, 4);
    const Schedule all = with_switches(of_host, 12);
    EXPECT_EQ(verify(all), std::nullopt) << patterns.front();
    // Without them hosts keep their own sums; and twice is once too often.
    Schedule none = all;
    Schedule twice = all;
    for (Lane& lane : none.lanes)
      std::erase_if(lane.stages, [](const Stage& stage) { return stage.kind == StageKind::in_switches; });
    for (Lane& lane : twice.lanes) lane.stages.insert(lane.stages.begin() + 1, lane.stages[1]);
    EXPECT_THAT(verify(none).value_or(""), ::testing::HasSubstr("without every contribution"));
    EXPECT_THAT(verify(twice).value_or(""), ::testing::HasSubstr("switches count a contribution twice"));
    // Those of rank 0's share, sent up: what its neighbours hold is in there.
    const RankWork work = work_of(all, 0, 4);
    EXPECT_GT(work.sent, work_of(of_host, 0, 4).sent);
  }
}

TEST(Verify, MoreRanksThanCanBeProvedAreRefused) {
  for (const int ranks : {kMostVerifiableRanks + 1, 27648}) {
    try {
      verify(make_schedule({"multi-ring", {ranks}, {}, 1, {}}, ranks, 1, 4));
      FAIL() << "no refusal of " << ranks;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  }
}

TEST(Verify, ProvesTheSameInBatchesOfAnySize) {
  constexpr int kRanks = 5;
  const Schedule schedule = make_schedule({"ring", {kRanks}, {}, 1, {}}, kRanks, 12, 4);
  const std::vector<Transfer> transfers = transfers_of(schedule);
  for (const unsigned segments : {1U, 2U, 3U, 4U, 5U}) {
    EXPECT_EQ(verify(schedule, {nullptr, segments * kRanks}), std::nullopt);
    for (const Transfer& target : transfers) {
      const auto drop = [&](Transfer& transfer) {
        if (transfer == target) transfer.slice.count = 0;
      };
      EXPECT_NE(verify(schedule, {drop, segments * kRanks}), std::nullopt)
          << target.source << " sends [" << target.slice.offset << ", " << target.slice.end()
          << ") to nobody, unseen in batches of " << segments;
    }
  }
}

/// Three members. The first step brings the whole from 2 to 0; in the second, 0 and 1 write to 2. As it
/// stands it counts 2 twice; with a copy from 0 all would be right, if only that came before what 1 sends.
class TwoWriters final : public Pattern {
 public:
  std::string_view name() const override { return "two writers"; }
  Outcome outcome() const override { return Outcome::at_one; }
  int steps(int) const override { return 2; }
  void sends(int n, int step, int member, std::vector<Move>& moves) const override {
    if (member == (step == 0 ? 2 : 0)) moves.push_back({step == 0 ? 0 : 2, {0, n}});
    if (member == 1 && step == 1) moves.push_back({2, {0, n}});
  }
  void receives(int n, int step, int member, std::vector<Move>& moves) const override {
    if (member == 0 && step == 0) moves.push_back({2, {0, n}});
    if (member == 2 && step == 1) moves.insert(moves.end(), {{0, {0, n}}, {1, {0, n}}});
  }
  Blocks holds(int n, int member) const override { return {0, member == 2 ? n : 0}; }
};

/// What verify says when rank 0's transfer to rank 2 is changed by `mutate`, and rank 1's by `other`.
std::string fault_of_two_writers(const std::function<void(Transfer&)>& mutate,
                                 const std::function<void(Transfer&)>& other = nullptr) {
  const TwoWriters pattern;
  const Schedule schedule{
      "two writers",
      3,
      9,
      {{{0, 9}, 1, {Dimension(pattern, 3, 1)}, {{0, StageKind::reduce}, {0, StageKind::spread}}}}};
  const auto tamper = [&](Transfer& transfer) {
    if (transfer.stage != 0 || transfer.step != 1) return;
    if (transfer.source == 0) mutate(transfer);
    if (transfer.source == 1 && other) other(transfer);
  };
  return verify(schedule, {tamper}).value_or("");
}

TEST(Verify, ACopyAndACombinationOfOneSliceInOneStepAreARace) {
  constexpr const char* kTwice = "rank 2 is written twice in the same step";
  const auto copy = [](Transfer& transfer) { transfer.combine = Combine::copy; };
  EXPECT_THAT(fault_of_two_writers([](Transfer&) {}), ::testing::HasSubstr("counted twice"));
  EXPECT_THAT(fault_of_two_writers(copy), ::testing::HasSubstr(kTwice));
  EXPECT_THAT(fault_of_two_writers([](Transfer&) {}, copy), ::testing::HasSubstr(kTwice));
  EXPECT_THAT(fault_of_two_writers(copy, copy), ::testing::HasSubstr(kTwice));
}

TEST(Verify, WritesThatOverlapInPartAreARace) {
  constexpr const char* kTwice = "rank 2 is written twice in the same step";
  const auto part = [](Slice slice, Combine combine) {
    return [=](Transfer& transfer) {
      transfer.slice = slice;
      transfer.combine = combine;
    };
  };
  const auto fault = [&](Slice first, Combine how, Slice second, Combine other) {
    return fault_of_two_writers(part(first, how), part(second, other));
  };
  EXPECT_THAT(fault({0, 5}, Combine::copy, {4, 5}, Combine::reduce), ::testing::HasSubstr(kTwice));
  EXPECT_THAT(fault({4, 5}, Combine::copy, {0, 5}, Combine::reduce), ::testing::HasSubstr(kTwice));
  EXPECT_THAT(fault({0, 9}, Combine::reduce, {4, 1}, Combine::copy), ::testing::HasSubstr(kTwice));
  for (const Combine other : {Combine::copy, Combine::reduce}) {
    const std::string apart = fault({0, 4}, Combine::copy, {4, 5}, other);
    EXPECT_THAT(apart, ::testing::Not(::testing::HasSubstr(kTwice))) << "they only touch";
  }
}

/// A write is compared with all others, not with its neighbours only: between the long combination and the
/// copy within it lies a short one.
TEST(Verify, ARaceIsSeenBehindAnotherWrite) {
  const Schedule schedule = make_schedule({"parameter-server", {4}, {}, 1, {}}, 4, 12, 4);
  const auto fault = verify(schedule, {[](Transfer& transfer) {
                              if (transfer.stage != 0 || transfer.destination != 0) return;
                              if (transfer.source == 2) transfer.slice = {1, 1};
                              if (transfer.source == 3)
                                transfer = {transfer.stream, 0, 0, 3, 0, {5, 1}, Combine::copy};
                            }});
  ASSERT_NE(fault, std::nullopt);
  EXPECT_THAT(*fault, ::testing::HasSubstr("rank 0 is written twice in the same step"));
}

TEST(Verify, LanesThatDoNotTileThePayloadAreNoticed) {
  Schedule schedule = make_schedule({"multi-ring", {2}, {}, 2, {}}, 2, 10, 4);
  schedule.lanes[1].slice.offset += 1;
  EXPECT_EQ(verify(schedule), "lane 1 leaves a gap or overlaps");
  schedule.lanes[1].slice.offset -= 1;
  schedule.count += 1;
  EXPECT_EQ(verify(schedule), "the lanes cover 10 of 11 elements");
}

}  // namespace
}  // namespace polyring
