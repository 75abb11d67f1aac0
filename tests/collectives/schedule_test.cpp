#include "collectives/schedule/schedule.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/sweep.hpp"

namespace polyring {
namespace {

TEST(Part, TilesTheWholeWithPartsThatDifferByOneAtMost) {
  for (const Count count : {0, 1, 5, 16, 1000003}) {
    for (const int parts : {1, 2, 3, 7, 16}) {
      Count next = 100;
      for (int i = 0; i < parts; ++i) {
        const Slice slice = part({100, count}, i, parts);
        EXPECT_EQ(slice.offset, next);
        EXPECT_GE(slice.count, count / parts);
        EXPECT_LE(slice.count, count / parts + 1);
        next = slice.end();
      }
      EXPECT_EQ(next, 100 + count);
    }
  }
}

TEST(Part, OfSeveralIsTheirUnion) {
  const Slice run = part({10, 23}, 2, 7, 3);
  EXPECT_EQ(run.offset, part({10, 23}, 2, 7).offset);
  EXPECT_EQ(run.end(), part({10, 23}, 4, 7).end());
}

TEST(Part, DoesNotOverflowBeyondTwoToThe31) {
  const Count huge = Count{1} << 40;
  EXPECT_EQ(part({0, huge}, 255, 256).end(), huge);
}

/// What each rank sends in all, in units of the payload, as the algorithms' headers claim.
struct Claim {
  const char* algorithm;
  double sent;  // by the busiest rank, in payloads
  int steps;    // of the longest lane
};

class Claims : public ::testing::TestWithParam<Claim> {};

TEST_P(Claims, HoldForEightRanks) {
  const Claim claim = GetParam();
  const Schedule schedule = make_schedule({claim.algorithm, {8}, {}, 1, {}}, 8, 8000, 4);
  double sent = 0;
  int steps = 0;
  for (Rank rank = 0; rank < 8; ++rank) {
    const RankWork work = work_of(schedule, rank);
    sent = std::max(sent, static_cast<double>(work.sent) / 8000);
    steps = std::max(steps, work.steps);
  }
  EXPECT_DOUBLE_EQ(sent, claim.sent);
  EXPECT_EQ(steps, claim.steps);
}

INSTANTIATE_TEST_SUITE_P(Headers, Claims,
                         ::testing::Values(Claim{"ring", 2 * 7.0 / 8, 14},
                                           Claim{"multi-ring", 2 * 7.0 / 8, 14},
                                           Claim{"halving-doubling", 2 * 7.0 / 8, 6},
                                           Claim{"recursive-doubling", 3, 3}, Claim{"direct", 2 * 7.0 / 8, 2},
                                           Claim{"parameter-server", 7, 2}));

TEST(MultiRing, SendsBetweenHostsOnlyWhatItsDimensionLeaves) {
  // 4x8x8: of the payload S, 2·3/4 in a host, 2·7/8 of the quarter near, 2·7/8 of the thirty-second far.
  const Count count = 4 * 8 * 8 * 100;
  const RankWork work = work_of(make_schedule({"multi-ring", {4, 8, 8}, {}, 1, {}}, 256, count, 4), 17);
  EXPECT_EQ(work.sent, 2 * (count * 3 / 4 + count / 4 * 7 / 8 + count / 32 * 7 / 8));
  EXPECT_EQ(work.steps, 2 * (3 + 7 + 7));
}

TEST(RankWork, CountsEveryChunkAlsoWhereTheyAreUneven) {
  const Schedule schedule = make_schedule({"multi-ring", {3, 4}, {}, 3, {400}}, 12, 1003, 4);
  ASSERT_GT(schedule.lanes[0].chunks, 1);
  ASSERT_NE(schedule.lanes[0].slice.count % schedule.lanes[0].chunks, 0);
  std::vector<Transfer> sends;
  for (int lane = 0; lane < 3; ++lane) {
    const Lane& at = schedule.lanes[static_cast<std::size_t>(lane)];
    for (int chunk = 0; chunk < at.chunks; ++chunk) {
      for (int stage = 0; stage < stage_count(at); ++stage) {
        for (int step = 0; step < step_count(at, stage); ++step)
          append_sends(schedule, {lane, chunk}, stage, step, 5, sends);
      }
    }
  }
  Count sent = 0;
  for (const Transfer& transfer : sends) sent += transfer.slice.count;
  EXPECT_EQ(work_of(schedule, 5).sent, sent);
}

TEST(RankWork, OfBlocksIsTheLeastThereIs) {
  // (n − 1)/n of the payload, however it is cut: also where chunks differ by an element of each block.
  for (const Plan& plan : {Plan{"ring", {4}, {}, 3, {16}}, Plan{"multi-ring", {2, 2}, {}, 2, {16}},
                           Plan{"pairwise", {4}, {}, 1, {12}}, Plan{"halving-doubling", {4}, {}, 2, {}}}) {
    for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
      for (const Count block : {1, 2, 7, 10}) {
        const Schedule schedule = make_schedule(plan, 4, 4 * block, 1, collective);
        for (Rank rank = 0; rank < 4; ++rank)
          EXPECT_EQ(work_of(schedule, rank).sent, 3 * block) << to_text(plan) << " " << block;
      }
    }
  }
}

TEST(Chunks, OfBlocksAreNoMoreThanABlocksElements) {
  const Schedule schedule = make_schedule({"ring", {4}, {}, 2, {1}}, 4, 4 * 10, 1, Collective::allgather);
  for (const Lane& lane : schedule.lanes) EXPECT_EQ(lane.chunks, 5);
}

TEST(RankWork, HasTheStepsOfTheLongestLane) {
  // The last of the lanes have no elements.
  EXPECT_EQ(work_of(make_schedule({"ring", {4}, {}, 3, {}}, 4, 8, 4), 0).steps, 6);
  EXPECT_EQ(work_of(make_schedule({"one-shot", {4}, {}, 3, {}}, 4, 1, 4), 0).steps, 1);
}

TEST(Halving, SendsTheLeastPossibleForAnyRankCount) {
  for (int ranks = 2; ranks <= 33; ++ranks) {
    const Count count = 10 * ranks;
    const Schedule schedule = make_schedule({"halving-doubling", {ranks}, {}, 1, {}}, ranks, count, 4);
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(work_of(schedule, rank).sent, 2 * (count - 10)) << ranks;
    }
  }
}

TEST(Tree, KeepsEveryPortEquallyBusyForEvenRankCounts) {
  for (const int ranks : {4, 6, 8, 16, 30}) {
    const Schedule schedule = make_schedule({"tree", {ranks}, {}, 1, {}}, ranks, 1000, 4);
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_LE(work_of(schedule, rank).sent, 2000) << ranks << " ranks, rank " << rank;
    }
  }
}

TEST(RecursiveDoubling, FoldsTheRanksBeyondAPowerOfTwo) {
  // Of six ranks, 0 and 2 send once and receive the result; 1, 3, 4 and 5 double, and two of them spread.
  const Schedule schedule = make_schedule({"recursive-doubling", {6}, {}, 1, {}}, 6, 100, 4);
  const std::vector<Count> sent{100, 300, 100, 300, 200, 200};
  for (Rank rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(work_of(schedule, rank).sent, sent[static_cast<std::size_t>(rank)]) << rank;
  }
}

TEST(ChainTree, CrossesHostsOnlyBetweenTheHeadsOfItsChains) {
  // Two pairs of trees over four hosts of four: heads are the ranks 0 and 2 of each host.
  const Schedule schedule = make_schedule({"chain-tree", {4, 4}, {}, 2, {}}, 16, 1600, 4);
  std::vector<Transfer> sends;
  for (int lane = 0; lane < 4; ++lane) {
    for (int stage = 0; stage < 4; ++stage) {
      for (int step = 0; step < step_count(schedule.lanes[static_cast<std::size_t>(lane)], stage); ++step) {
        for (Rank rank = 0; rank < 16; ++rank) append_sends(schedule, {lane, 0}, stage, step, rank, sends);
      }
    }
  }
  Count between_hosts = 0;
  for (const Transfer& transfer : sends) {
    if (transfer.source / 4 == transfer.destination / 4) continue;
    between_hosts += transfer.slice.count;
    EXPECT_EQ(transfer.source % 4, transfer.stream.lane / 2 * 2);
    EXPECT_EQ(transfer.destination % 4, transfer.stream.lane / 2 * 2);
  }
  EXPECT_EQ(between_hosts, 2 * 3 * 1600);
}

TEST(Ring, LanesLeaveAHostFromDifferentRanks) {
  const Schedule schedule = make_schedule({"ring", {4, 2}, {}, 4, {}}, 8, 800, 4);
  std::vector<int> leaves(4);
  for (int lane = 0; lane < 4; ++lane) {
    std::vector<Transfer> sends;
    for (Rank rank = 0; rank < 8; ++rank) append_sends(schedule, {lane, 0}, 0, 0, rank, sends);
    for (const Transfer& transfer : sends) {
      if (transfer.source / 4 == 0 && transfer.destination / 4 == 1)
        ++leaves[static_cast<std::size_t>(transfer.source)];
    }
  }
  EXPECT_EQ(leaves, std::vector<int>({1, 1, 1, 1}));
}

/// All sends of a rank, with ranks renamed.
std::vector<Transfer> sends_of(const Schedule& schedule, Rank rank, const auto& renamed) {
  std::vector<Transfer> sends;
  for (int lane = 0; lane < static_cast<int>(schedule.lanes.size()); ++lane) {
    const Lane& at = schedule.lanes[static_cast<std::size_t>(lane)];
    for (int stage = 0; stage < stage_count(at); ++stage) {
      for (int step = 0; step < step_count(at, stage); ++step)
        append_sends(schedule, {lane, 0}, stage, step, rank, sends);
    }
  }
  for (Transfer& send : sends) {
    send.source = renamed(send.source);
    send.destination = renamed(send.destination);
  }
  return sends;
}

TEST(Patterns, ThatAreCyclicLookTheSameToAllMembers) {
  int cyclic = 0;
  for (const std::string_view name :
       {"ring", "halving", "direct", "pairwise", "one-shot", "doubling", "star"}) {
    const Pattern& pattern = *find_pattern(name);
    for (const int n : {2, 3, 5, 8}) {
      for (int step = 0; pattern.cyclic() && step < pattern.steps(n); ++step) {
        for (int member = 0; member < n; ++member) {
          std::vector<Move> moves;
          std::vector<Move> next;
          pattern.sends(n, step, member, moves);
          pattern.sends(n, step, (member + 1) % n, next);
          for (Move& move : moves) {
            move.peer = (move.peer + 1) % n;
            // All blocks are all blocks, whichever comes first.
            if (move.blocks.number < n) move.blocks.first = (move.blocks.first + 1) % n;
          }
          EXPECT_EQ(moves, next) << name << ' ' << n << ' ' << step << ' ' << member;
        }
      }
    }
    cyclic += pattern.cyclic();
  }
  EXPECT_EQ(cyclic, 4);
}

TEST(InGroups, EveryGroupDoesWhatTheOneDid) {
  // 2 x 6 x 3 ranks: the groups are the lines along the middle.
  for (const Algorithm& algorithm : algorithms()) {
    const Plan plan{
        std::string(algorithm.name), algorithm.has_dims ? std::vector{3, 2} : std::vector{6}, {}, 2, {}};
    const Schedule one = make_schedule(plan, 6, 600, 4);
    const Schedule all = in_groups(one, 2, 36);
    EXPECT_EQ(all.ranks, 36);
    for (Rank rank = 0; rank < 36; ++rank) {
      const Rank first = rank / 12 * 12 + rank % 2;  // of its group
      const auto in_group = [&](Rank member) { return first + 2 * member; };
      const auto unchanged = [](Rank same) { return same; };
      EXPECT_EQ(sends_of(all, rank, unchanged), sends_of(one, (rank - first) / 2, in_group))
          << algorithm.name << " " << rank;
    }
  }
}

TEST(InGroups, OfWhichThereAreNotAWholeNumberAreRefused) {
  const Schedule one = make_schedule({"ring", {4}}, 4, 100, 4);
  EXPECT_EQ(in_groups(one, 2, 16).ranks, 16);
  for (const auto& [stride, ranks] : {std::pair(2, 12), {3, 4}, {0, 8}, {-1, 8}, {1, 0}, {1 << 30, 8}})
    EXPECT_THROW(in_groups(one, stride, ranks), Error) << stride << ", " << ranks;
}

TEST(Chunks, CoverTheLaneInOrder) {
  const Schedule schedule = make_schedule({"multi-ring", {2}, {}, 2, {40}}, 2, 101, 4);
  Count next = 0;
  for (int lane = 0; lane < 2; ++lane) {
    for (int chunk = 0; chunk < schedule.lanes[static_cast<std::size_t>(lane)].chunks; ++chunk) {
      const Slice slice = stream_slice(schedule, {lane, chunk});
      EXPECT_EQ(slice.offset, next);
      EXPECT_LE(slice.count, 10);
      next = slice.end();
    }
  }
  EXPECT_EQ(next, 101);
}

}  // namespace
}  // namespace polyring
