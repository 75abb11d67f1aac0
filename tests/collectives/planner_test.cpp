#include "collectives/schedule/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/verify.hpp"
#include "topology/presets.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;

/// float32 on hosts whose ranks reach each other's memory, or do not.
Problem problem_of(RankGrid grid, Bytes payload, bool reach, std::string_view algorithm = "multi-ring") {
  Problem problem;
  problem.algorithm = algorithm;
  problem.grid = grid;
  problem.count = static_cast<Count>(payload.value) / 4;
  if (reach && grid.per_host > 0)
    problem.reach = [per_host = grid.per_host](Rank a, Rank b) { return a / per_host == b / per_host; };
  return problem;
}

Plan by_rule(const Problem& problem, const PlanConstraints& constraints = {}) {
  const PlanChoice choice = RulePlanner().choose(problem, constraints);
  EXPECT_EQ(choice.source, PlanSource::rules);
  return choice.plan;
}

constexpr RankGrid kOneHost{4, 4, 1};
constexpr RankGrid kFourHosts{16, 4, 4};
constexpr RankGrid kUnequal{5, 0, 2};
constexpr Bytes kTiny{1 << 10};
constexpr Bytes kSmall{8 << 10};
constexpr Bytes kLarge{64 << 20};

TEST(Rules, ChoosePatternsByReachAndPayload) {
  EXPECT_THAT(by_rule(problem_of(kOneHost, kTiny, true)).patterns, ElementsAre("one-shot"));
  EXPECT_THAT(by_rule(problem_of(kOneHost, kSmall, true)).patterns, ElementsAre("direct"));
  EXPECT_THAT(by_rule(problem_of(kOneHost, kLarge, true)).patterns, ElementsAre("direct"));
  EXPECT_THAT(by_rule(problem_of(kFourHosts, kTiny, true)).patterns, ElementsAre("star", "doubling"));
  EXPECT_THAT(by_rule(problem_of(kFourHosts, kSmall, true)).patterns, ElementsAre("star", "halving"));
  EXPECT_THAT(by_rule(problem_of(kFourHosts, kLarge, true)).patterns, ElementsAre("direct", "ring"));
  for (const Bytes payload : {kTiny, kSmall, kLarge}) {
    EXPECT_EQ(by_rule(problem_of(kOneHost, payload, false)).patterns, std::vector<std::string>{"ring"});
    EXPECT_EQ(by_rule(problem_of(kFourHosts, payload, false)).patterns.front(), "ring");
  }
  EXPECT_THAT(by_rule(problem_of(kUnequal, kSmall, true)).patterns, ElementsAre("halving"));
}

TEST(Rules, ChooseStarsOnlyWhereAllRanksOfAHostReachEachOther) {
  Problem problem = problem_of(kFourHosts, kSmall, true);
  problem.reach = [](Rank a, Rank b) { return a / 2 == b / 2; };
  EXPECT_THAT(patterns_by_rule(problem, {2, 2, 4}), ElementsAre("direct", "ring", "halving"));
  EXPECT_THAT(patterns_by_rule(problem, {4, 4}), ElementsAre("ring", "halving"));
}

TEST(Rules, ChooseDimensionsByHosts) {
  EXPECT_THAT(by_rule(problem_of(kOneHost, kLarge, true)).dims, ElementsAre(4));
  EXPECT_THAT(by_rule(problem_of(kFourHosts, kLarge, true)).dims, ElementsAre(4, 4));
  EXPECT_THAT(by_rule(problem_of(kUnequal, kLarge, true)).dims, ElementsAre(5));
  EXPECT_THAT(by_rule(problem_of({3, 1, 3}, kLarge, true)).dims, ElementsAre(3));
}

TEST(Rules, KeepConstraints) {
  const Problem problem = problem_of(kFourHosts, kLarge, true);
  PlanConstraints constraints;
  constraints.dims = {2, 8};
  constraints.patterns = {"halving", "direct"};
  constraints.lanes = 3;
  constraints.chunk = {12'345};
  EXPECT_EQ(by_rule(problem, constraints), (Plan{"multi-ring", {2, 8}, {"halving", "direct"}, 3, {12'345}}));
  constraints.dims = {3, 5};
  EXPECT_THROW(by_rule(problem, constraints), Error);
}

TEST(Rules, GiveNoPatternsToOtherAlgorithms) {
  for (const Algorithm& algorithm : algorithms()) {
    const Plan plan = by_rule(problem_of(kFourHosts, kLarge, true, algorithm.name));
    EXPECT_EQ(plan.patterns.empty(), !algorithm.has_dims) << algorithm.name;
    EXPECT_EQ(verify(make_schedule(plan, 16, 1000, 4)), std::nullopt) << algorithm.name;
  }
}

TEST(Rules, ChooseForCollectivesOfBlocksWhatCanMakeThem) {
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    for (const RankGrid& grid : {kOneHost, kFourHosts, kUnequal}) {
      for (const Bytes payload : {kTiny, kSmall, kLarge}) {
        for (const bool reach : {false, true}) {
          Problem problem = problem_of(grid, payload, reach);
          problem.collective = collective;
          problem.longest_message = {56 << 10};
          const Plan plan = by_rule(problem);
          EXPECT_TRUE(can_make(plan, collective)) << to_text(collective) << " by " << to_text(plan);
          EXPECT_EQ(verify(make_schedule(plan, grid.ranks, 10 * grid.ranks, 4, collective)), std::nullopt);
        }
      }
    }
  }
  Problem problem = problem_of(kFourHosts, kTiny, true);
  problem.collective = Collective::reduce_scatter;
  EXPECT_THAT(by_rule(problem).patterns, ElementsAre("direct", "halving"));
  problem.collective = Collective::alltoall;
  EXPECT_THAT(by_rule(problem).patterns, ElementsAre("direct", "direct"));
  problem.count = 16 << 20;
  EXPECT_THAT(by_rule(problem).patterns, ElementsAre("direct", "pairwise"));
  EXPECT_EQ(by_rule(problem).chunk, Bytes{}) << "there is nothing to overlap";
}

TEST(Rules, LeaveASingleExchangeWholeAndKeepMessagesBetweenHostsShort) {
  EXPECT_EQ(by_rule(problem_of(kOneHost, kLarge, true)).chunk, Bytes{});
  EXPECT_GT(by_rule(problem_of(kOneHost, kLarge, false)).chunk, Bytes{});
  PlanConstraints halving;
  halving.patterns = {"halving"};
  EXPECT_GT(by_rule(problem_of(kOneHost, kLarge, true), halving).chunk, Bytes{}) << "two steps overlap";
  for (const Bytes payload : {kSmall, Bytes{1 << 20}, kLarge}) {
    Problem problem = problem_of(kFourHosts, payload, true);
    problem.longest_message = {56 << 10};
    const Plan plan = by_rule(problem);
    const Schedule schedule = make_schedule(plan, 16, problem.count, 4);
    std::vector<Transfer> sends;
    for (int stage = 0; stage < stage_count(schedule.lanes.front()); ++stage) {
      for (int step = 0; step < step_count(schedule.lanes.front(), stage); ++step)
        append_sends(schedule, {}, stage, step, 0, sends);
    }
    std::erase_if(sends, [](const Transfer& send) { return send.destination < 4; });
    EXPECT_FALSE(sends.empty());
    for (const Transfer& send : sends) EXPECT_LE(4 * send.slice.count, (56 << 10) + 4) << to_text(plan);
  }
}

TEST(Grids, AreThoseOfClusters) {
  EXPECT_EQ(grid_of(preset("minsky", 3)), (RankGrid{12, 4, 3}));
  Cluster unequal = preset("minsky", 1);
  unequal.groups.push_back(preset("dgx-a100", 1).groups.front());
  EXPECT_EQ(grid_of(unequal), (RankGrid{12, 0, 2}));
}

/// One plan, whatever is asked.
class Fixed final : public Planner {
 public:
  PlanChoice choose(const Problem&, const PlanConstraints&) const override {
    return {kPlan, PlanSource::price};
  }
  inline static const Plan kPlan{"multi-ring", {7}, {"ring"}, 1, {}};
};

TEST(TunedChoices, AreTakenForMultiRingWithoutConstraints) {
  TuningPlace place;
  place.transport = "MPI";
  const Plan tuned{"multi-ring", {4}, {"halving"}, 2, {}};
  const Plan by_default{"multi-ring", {4}, {"direct"}, 1, {}};
  const std::vector<TunedPlan> choices{{place, kTiny, by_default, true}, {place, Bytes{1 << 20}, tuned}};
  const Fixed otherwise;
  const TunedPlanner planner(choices, "MPI", otherwise);
  const auto of = [&](const TunedPlanner& asked, Bytes payload, const PlanConstraints& constraints = {},
                      std::string_view algorithm = "multi-ring") {
    return asked.choose(problem_of(kOneHost, payload, true, algorithm), constraints).plan;
  };
  EXPECT_EQ(of(planner, {1 << 20}), tuned);
  EXPECT_EQ(of(planner, {2 << 20}), tuned) << "near enough";
  EXPECT_EQ(of(planner, {64 << 20}), Fixed::kPlan) << "too far";
  EXPECT_EQ(of(planner, kTiny), Fixed::kPlan) << "nothing was faster than the default";
  EXPECT_EQ(of(planner, {1 << 20}, {.lanes = 1}), Fixed::kPlan);
  EXPECT_EQ(of(planner, {1 << 20}, {}, "ring"), Fixed::kPlan);
  EXPECT_EQ(of(TunedPlanner(choices, "shared memory", otherwise), {1 << 20}), Fixed::kPlan);
  EXPECT_EQ(of(TunedPlanner({}, "MPI", otherwise), {1 << 20}), Fixed::kPlan);
}

TEST(Candidates, BetweenGpusAreTheRulesAndRings) {
  std::set<std::vector<std::string>> patterns;
  const Cluster dgx = preset("dgx-h100", 4);
  for (const Plan& plan : candidate_plans(modelled_problem("multi-ring", dgx, 1 << 24, 4), dgx)) {
    if (plan.dims.size() == 2) patterns.insert(plan.patterns);
  }
  EXPECT_THAT(patterns, ElementsAre(ElementsAre("direct", "ring"), ElementsAre("ring", "ring")));
}

TEST(Candidates, BetweenProcessesAreTheRulesInTheHostsOwnGrid) {
  Machine machine = preset("minsky", 1).host(0);
  Cluster hosts = cluster_of(with_processes(std::move(machine), 4), 4);
  hosts.fabric.hosts_per_leaf = 2;
  for (const Count count : {Count{100}, Count{1} << 24}) {
    const auto plans = candidate_plans(modelled_problem("multi-ring", hosts, count, 4), hosts);
    ASSERT_FALSE(plans.empty());
    for (const Plan& plan : plans) {
      EXPECT_THAT(plan.dims, ElementsAre(4, 4));
      EXPECT_EQ(plan.patterns, by_rule(modelled_problem("multi-ring", hosts, count, 4)).patterns);
    }
  }
}

TEST(Patterns, HaveTheOutcomeThatTheySay) {
  for (const std::string_view name : pattern_names()) {
    const Pattern& pattern = *find_pattern(name);
    for (int n = 2; n <= 9; ++n) {
      int holders = 0;
      int blocks = 0;
      for (int member = 0; member < n; ++member) {
        holders += pattern.holds(n, member).number > 0 ? 1 : 0;
        blocks += pattern.holds(n, member).number;
      }
      const Outcome outcome = holders == 1  ? Outcome::at_one
                              : blocks == n ? Outcome::scattered
                                            : Outcome::everywhere;
      EXPECT_EQ(pattern.outcome(), outcome) << name << " of " << n;
    }
  }
}

TEST(Patterns, FollowAnOrderWhereEachSendsToTheNextAlone) {
  for (const std::string_view name : pattern_names()) {
    const Pattern& pattern = *find_pattern(name);
    constexpr int kMembers = 5;
    bool to_next = true;
    for (int step = 0; step < pattern.steps(kMembers); ++step) {
      for (int member = 0; member < kMembers; ++member) {
        std::vector<Move> moves;
        pattern.sends(kMembers, step, member, moves);
        for (const Move& move : moves) to_next = to_next && move.peer == (member + 1) % kMembers;
      }
    }
    EXPECT_EQ(pattern.follows_order(), to_next) << name;
  }
}

TEST(Patterns, AreTheSameForTwoWhereEachHandsTheOtherHalf) {
  const Pattern& ring = ring_pattern();
  EXPECT_TRUE(same_moves(ring, halving_pattern(), 2));
  EXPECT_TRUE(same_moves(ring, direct_pattern(), 2));
  EXPECT_FALSE(same_moves(ring, one_shot_pattern(), 2));
  EXPECT_FALSE(same_moves(ring, star_pattern(), 2));
  EXPECT_FALSE(same_moves(one_shot_pattern(), direct_pattern(), 2));
  EXPECT_FALSE(same_moves(ring, direct_pattern(), 3));
  EXPECT_FALSE(same_moves(ring, halving_pattern(), 4));
}

}  // namespace
}  // namespace polyring
