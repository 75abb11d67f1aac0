#include "collectives/schedule/tuning.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/verify.hpp"

namespace polyring {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const TuningPlace kPlace{"a processor", 8, "", 4, 1, 4, "shared memory"};

TunedPlan choice(std::uint64_t payload, int lanes, TuningPlace place = kPlace) {
  return {std::move(place), {payload}, Plan{"multi-ring", {4}, {"ring"}, lanes, {}}, false, 10, 20};
}

int lanes_at(std::span<const TunedPlan> choices, std::uint64_t payload, const TuningPlace& place = kPlace) {
  const TunedPlan* found = nearest(choices, place, {payload});
  return found == nullptr ? 0 : found->plan.lanes;
}

TEST(Tuning, TheNearestPayloadByRatioCounts) {
  const std::vector<TunedPlan> choices{choice(16000, 2), choice(1000, 1)};
  EXPECT_EQ(lanes_at(choices, 1000), 1);
  EXPECT_EQ(lanes_at(choices, 3999), 1);
  EXPECT_EQ(lanes_at(choices, 4000), 1) << "of two that are equally near, the smaller";
  EXPECT_EQ(lanes_at(choices, 4001), 2);
  EXPECT_EQ(lanes_at(choices, 250), 1);
  EXPECT_EQ(lanes_at(choices, 249), 0);
  EXPECT_EQ(lanes_at(choices, 64000), 2);
  EXPECT_EQ(lanes_at(choices, 64001), 0);
  EXPECT_EQ(lanes_at({}, 1000), 0);
}

TEST(Tuning, AChoiceHoldsForItsPlaceOnly) {
  const std::vector<TunedPlan> choices{choice(1000, 1)};
  for (const TuningPlace& other : {TuningPlace{"another", 8, "", 4, 1, 4, "shared memory"},
                                   TuningPlace{"a processor", 9, "", 4, 1, 4, "shared memory"},
                                   TuningPlace{"a processor", 8, "slow", 4, 1, 4, "shared memory"},
                                   TuningPlace{"a processor", 8, "", 8, 1, 4, "shared memory"},
                                   TuningPlace{"a processor", 8, "", 4, 2, 4, "shared memory"},
                                   TuningPlace{"a processor", 8, "", 4, 1, 2, "shared memory"},
                                   TuningPlace{"a processor", 8, "", 4, 1, 4, "MPI"}}) {
    EXPECT_EQ(lanes_at(choices, 1000, other), 0);
  }
}

TEST(Tuning, ANewChoiceReplacesTheOldOneOfItsPlaceAndPayload) {
  TuningPlace other = kPlace;
  other.ranks = 2;
  const std::vector<TunedPlan> older{choice(1000, 1), choice(2000, 1), choice(1000, 1, other)};
  const std::vector<TunedPlan> newer{choice(1000, 2), choice(4000, 2)};
  EXPECT_THAT(merged(older, newer),
              ElementsAre(choice(1000, 2), choice(2000, 1), choice(1000, 1, other), choice(4000, 2)));
}

TEST(Tuning, AChunkThatCutsNothingIsNone) {
  const Plan plan{"multi-ring", {4}, {"ring"}, 2, {4096}};
  EXPECT_EQ(effective(plan, {8192}).chunk, Bytes{});
  EXPECT_EQ(effective(plan, {8193}).chunk, Bytes{4096});
}

TEST(Tuning, CandidatesFitTheRanksAndAreRight) {
  for (const auto& [per_node, nodes] : {std::pair{4, 1}, std::pair{3, 1}, std::pair{2, 4}, std::pair{1, 4}}) {
    const int ranks = per_node * nodes;
    for (const std::vector<int>& grid : rank_grids(ranks, per_node, nodes)) {
      const Plan start{"multi-ring", grid, std::vector<std::string>(grid.size(), "ring"), 1, {}};
      for (const std::uint64_t payload : {4u, 1u << 10, 1u << 20}) {
        std::vector<Plan> plans = other_patterns(start, {payload});
        for (Plan& plan : other_cuts(start, {payload})) plans.push_back(std::move(plan));
        EXPECT_THAT(plans, Not(Contains(start)));
        for (const Plan& plan : plans) {
          const Schedule schedule = make_schedule(plan, ranks, static_cast<Count>(payload / 4), 4);
          EXPECT_EQ(verify(schedule), std::nullopt) << to_text(plan) << " of " << payload << " bytes";
        }
      }
    }
  }
}

TEST(Tuning, CandidatesAreThoseThatMakeSense) {
  const Plan flat{"multi-ring", {4}, {"ring"}, 1, {}};
  EXPECT_EQ(other_patterns(flat, {1024}).size(), 5u)
      << "no star, which is for what another dimension follows";
  EXPECT_EQ(other_patterns(flat, {1 << 20}).size(), 3u) << "one-shot and doubling are for small payloads";
  const Plan grid{"multi-ring", {4, 4}, {"direct", "direct"}, 1, {}};
  std::vector<std::vector<std::string>> patterns;
  for (const Plan& plan : other_patterns(grid, {1024})) patterns.push_back(plan.patterns);
  using Patterns = std::vector<std::string>;
  EXPECT_THAT(patterns, UnorderedElementsAre(Patterns{"ring", "direct"}, Patterns{"halving", "direct"},
                                             Patterns{"star", "direct"}, Patterns{"direct", "ring"},
                                             Patterns{"direct", "halving"}, Patterns{"direct", "doubling"},
                                             Patterns{"direct", "one-shot"}, Patterns{"pairwise", "direct"},
                                             Patterns{"direct", "pairwise"}));
  EXPECT_TRUE(other_cuts(flat, {1024}).empty());
  for (const Plan& plan : other_cuts(flat, Bytes{std::uint64_t{8} << 30})) {
    EXPECT_TRUE(plan.chunk.value == 0 || plan.chunk.value >= 4 << 20) << to_text(plan);
  }
}

TEST(Tuning, TellsPlansApartByTheirSchedules) {
  const Plan plan{"multi-ring", {2, 4}, {"ring", "direct"}, 1, {}};
  Plan other = plan;
  EXPECT_TRUE(same_schedule(plan, other));
  other.patterns = {"halving", "direct"};
  EXPECT_TRUE(same_schedule(plan, other)) << "for two";
  other.patterns = {"ring", "ring"};
  EXPECT_FALSE(same_schedule(plan, other));
  other = plan;
  other.lanes = 2;
  EXPECT_FALSE(same_schedule(plan, other));
  other = plan;
  other.dims = {8};
  other.patterns = {"ring"};
  EXPECT_FALSE(same_schedule(plan, other));
}

TEST(RankGrids, AreFlatAndThoseOfTheHosts) {
  EXPECT_THAT(rank_grids(2, 2, 1), ElementsAre(ElementsAre(2)));
  EXPECT_THAT(rank_grids(4, 4, 1), ElementsAre(ElementsAre(4), ElementsAre(2, 2)));
  EXPECT_THAT(rank_grids(16, 4, 4), ElementsAre(ElementsAre(16), ElementsAre(4, 4), ElementsAre(4, 2, 2)));
  EXPECT_THAT(rank_grids(4, 1, 4), ElementsAre(ElementsAre(4), ElementsAre(2, 2)));
  EXPECT_THAT(rank_grids(5, 0, 2), ElementsAre(ElementsAre(5)));
  EXPECT_THAT(rank_grids(1, 1, 1), ElementsAre(ElementsAre(1)));
}

}  // namespace
}  // namespace polyring
