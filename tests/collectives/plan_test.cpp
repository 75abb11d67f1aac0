#include "collectives/schedule/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The sentence of the usage Error that `call` throws.
template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

Cluster make_cluster(int hosts, int gpus, int hosts_per_leaf = 0) {
  Machine machine;
  machine.packages.resize(1);
  machine.gpus.resize(static_cast<std::size_t>(gpus));
  Cluster cluster;
  cluster.groups = {{machine, hosts}};
  cluster.fabric.hosts_per_leaf = hosts_per_leaf;
  return cluster;
}

TEST(Dims, AreReadAndWritten) {
  EXPECT_THAT(parse_dims("4x8x8"), ElementsAre(4, 8, 8));
  EXPECT_THAT(parse_dims("1"), ElementsAre(1));
  EXPECT_EQ(dims_text({4, 8, 8}), "4x8x8");
}

TEST(Dims, ThatMakeNoSenseAreRefused) {
  for (const char* text :
       {"", "x", "4x", "x4", "4xx4", "0", "4x0", "-1", "4,8", "4x8 ", "a", "1.5", "99999999999"}) {
    EXPECT_THAT(refusal([&] { parse_dims(text); }), HasSubstr("such as 4x8x8")) << text;
  }
  EXPECT_THAT(refusal([] { parse_dims("65536x65536x4"); }), HasSubstr("more ranks than there can be"));
}

TEST(Plan, OfNegativeDimensionsIsRefused) {
  for (const std::vector<int>& dims : {std::vector{-2, -2}, {-4, -1}, {0, 4}, {4, 0}}) {
    EXPECT_THAT(refusal([&] {
                  make_schedule({"multi-ring", dims}, 4, 100, 4);
                }),
                HasSubstr("are impossible"));
  }
}

TEST(Orders, AreReadAndWritten) {
  const std::vector<std::vector<int>> orders{{0, 1, 3, 2}, {2, 3, 1, 0}};
  EXPECT_EQ(parse_orders("0-1-3-2/2-3-1-0"), orders);
  EXPECT_EQ(orders_text(orders), "0-1-3-2/2-3-1-0");
  EXPECT_EQ(parse_orders("0"), std::vector<std::vector<int>>{{0}});
}

TEST(Orders, ThatMakeNoSenseAreRefused) {
  for (const char* text : {"", "-", "/", "0-", "0-1/", "0--1", "a", "0,1", "0-1 ", "0x1"})
    EXPECT_THAT(refusal([&] { parse_orders(text); }), HasSubstr("such as 0-1-3-2/2-3-1-0")) << text;
  for (const char* text : {"1", "0-0", "0-2", "0-1/0-1-2", "0-1-2/0-1"})
    EXPECT_THAT(refusal([&] { parse_orders(text); }), HasSubstr("does not have each rank")) << text;
}

TEST(DdlOptions, MeanTheSameDimensions) {
  const DdlOptions options = parse_ddl_options("-mode p:4x8x8 -dump_iter 100 -dev_sync 1");
  EXPECT_THAT(options.dims, ElementsAre(4, 8, 8));
  EXPECT_THAT(options.ignored, ElementsAre("-dump_iter", "-dev_sync"));
  EXPECT_THAT(parse_ddl_options("-mode r:16").dims, ElementsAre(16));
  EXPECT_THAT(parse_ddl_options("-mode b").dims, ElementsAre());
  EXPECT_THAT(parse_ddl_options("").dims, ElementsAre());
}

TEST(DdlOptions, ThatAreUnknownAreRefused) {
  EXPECT_THAT(refusal([] { parse_ddl_options("-mode z:4x8"); }), HasSubstr("unknown DDL mode 'z:4x8'"));
  EXPECT_THAT(refusal([] { parse_ddl_options("-mode"); }), HasSubstr("needs a value"));
  EXPECT_THAT(refusal([] { parse_ddl_options("--mode p:4"); }), HasSubstr("unknown DDL option '--mode'"));
  EXPECT_THAT(refusal([] { parse_ddl_options("-mode p:4y8"); }), HasSubstr("such as 4x8x8"));
}

TEST(CheckPlan, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal([] {
                check_plan({"multi-ring", {4, 8}}, 16);
              }),
              HasSubstr("dimensions 4x8 make 32 ranks, but there are 16"));
  EXPECT_THAT(refusal([] {
                check_plan({"multi-rong", {4}}, 4);
              }),
              HasSubstr("choose from multi-ring, ring,"));
  EXPECT_THAT(refusal([] {
                check_plan({"multi-ring", {4}, {"rings"}}, 4);
              }),
              HasSubstr("unknown pattern 'rings'"));
  EXPECT_THAT(refusal([] {
                check_plan({"multi-ring", {4}, {"ring", "ring"}}, 4);
              }),
              HasSubstr("one for each"));
  EXPECT_THAT(refusal([] { check_plan({"ring", {4}, {"ring"}}, 4); }), HasSubstr("only multi-ring"));
  EXPECT_THAT(refusal([] { check_plan({"ring", {4}, {}, 0}, 4); }), HasSubstr("lanes"));
  EXPECT_THAT(refusal([] { check_plan({"ring", {1}}, 0); }), HasSubstr("0 ranks"));
  EXPECT_THAT(refusal([] {
                check_plan({"ring", {2, 2}, {}, 1, {}, {{0, 1, 2, 3}}}, 4);
              }),
              HasSubstr("is of 4 ranks, but the first dimension has 2"));
  EXPECT_THAT(refusal([] { check_plan({"ring", {3}, {}, 1, {}, {{0, 1, 1}}}, 3); }), HasSubstr("0-1-1"));
  EXPECT_THAT(refusal([] { check_plan({"direct", {2}, {}, 1, {}, {{1, 0}}}, 2); }), HasSubstr("no rings"));
  EXPECT_THAT(refusal([] { make_schedule({"ring", {1}}, 1, -1, 4); }), HasSubstr("-1 elements"));
}

TEST(NaturalDims, FollowTheMachine) {
  EXPECT_THAT(natural_dims(make_cluster(64, 4)), ElementsAre(4, 64));
  EXPECT_THAT(natural_dims(make_cluster(1, 4)), ElementsAre(4));
  EXPECT_THAT(natural_dims(make_cluster(8, 1)), ElementsAre(8));
  EXPECT_THAT(natural_dims(make_cluster(1, 1)), ElementsAre(1));
  EXPECT_THAT(natural_dims(make_cluster(64, 4, 8)), ElementsAre(4, 8, 8));
  EXPECT_THAT(natural_dims(make_cluster(12, 4, 8)), ElementsAre(4, 12))
      << "leaves that are not full make no dimension";
  Cluster pods = make_cluster(64, 4, 4);
  pods.fabric.pods = {{16, {}}};
  EXPECT_THAT(natural_dims(pods), ElementsAre(4, 4, 4, 4));
  pods.fabric.pods = {{24, {}}};
  EXPECT_THAT(natural_dims(pods), ElementsAre(4, 4, 16)) << "nor do pods";
  Cluster uneven = make_cluster(2, 4);
  uneven.groups.push_back(make_cluster(1, 3).groups.front());
  EXPECT_THAT(natural_dims(uneven), ElementsAre(11));
}

TEST(CandidatePlans, AreAllValidAndHoldTheDdlShape) {
  const Cluster cluster = make_cluster(64, 4);
  for (const Algorithm& algorithm : algorithms()) {
    bool near_and_far = false;
    for (const Plan& plan :
         candidate_plans(modelled_problem(algorithm.name, cluster, 100 << 20, 1), cluster)) {
      EXPECT_NO_THROW(check_plan(plan, 256));
      near_and_far = near_and_far || plan.dims == std::vector<int>{4, 8, 8};
    }
    EXPECT_EQ(near_and_far, algorithm.has_dims) << algorithm.name;
  }
}

TEST(CandidatePlans, VaryOnlyWhatIsNotWishedFor) {
  const Cluster cluster = make_cluster(64, 4);
  const PlanConstraints constraints{{256}, {"direct"}, 0, {}};
  const auto plans =
      candidate_plans(modelled_problem("multi-ring", cluster, 100 << 20, 1), cluster, constraints);
  EXPECT_GT(plans.size(), 4u) << "lanes and chunks are free";
  for (const Plan& plan : plans) {
    EXPECT_THAT(plan.dims, ElementsAre(256));
    EXPECT_THAT(plan.patterns, ElementsAre("direct"));
  }
  const auto only =
      candidate_plans(modelled_problem("multi-ring", cluster, 100 << 20, 1), cluster, {{256}, {}, 3, {4096}});
  ASSERT_EQ(only.size(), 1u);
  EXPECT_EQ(only.front().lanes, 3);
  EXPECT_EQ(only.front().chunk.value, 4096u);
}

TEST(CandidatePlans, HaveThePartsOfAHostAsADimension) {
  const auto dims_of = [](const char* machine, int hosts) {
    std::set<std::string> dims;
    for (const Plan& plan : candidate_plans(
             modelled_problem("multi-ring", preset(machine, hosts), 100 << 20, 1), preset(machine, hosts)))
      dims.insert(dims_text(plan.dims));
    return dims;
  };
  EXPECT_THAT(dims_of("minsky", 1), ElementsAre("2x2", "4"));
  EXPECT_THAT(dims_of("summit", 64), ElementsAre("3x2x64", "3x2x8x8", "6x64", "6x8x8"));
  EXPECT_THAT(dims_of("dgx1-p100", 2), ElementsAre("4x2x2", "8x2"));
}

TEST(CandidatePlans, HaveTheRingsOfAHostWhereTheyAreOthersThanItsRanksOwn) {
  const auto orders_of = [](const char* algorithm, const char* machine, int hosts,
                            const PlanConstraints& constraints = {}) {
    std::set<std::string> orders;
    for (const Plan& plan : candidate_plans(modelled_problem(algorithm, preset(machine, hosts), 100 << 20, 1),
                                            preset(machine, hosts), constraints)) {
      EXPECT_NO_THROW(check_plan(plan, 8 * hosts));
      if (plan.orders.empty()) continue;
      orders.insert(orders_text(plan.orders));
      EXPECT_EQ(plan.dims.front(), 8);
    }
    return orders;
  };
  EXPECT_EQ(orders_of("multi-ring", "dgx1-p100", 1).size(), 1u);
  EXPECT_EQ(orders_of("multi-ring", "dgx1-p100", 4).size(), 1u);
  EXPECT_EQ(orders_of("ring", "dgx1-p100", 4).size(), 1u);
  EXPECT_EQ(orders_of("tree", "dgx1-p100", 4).size(), 0u) << "has no rings";
  EXPECT_EQ(orders_of("multi-ring", "dgx-a100", 4).size(), 0u) << "any order is as good";
  EXPECT_EQ(orders_of("ring", "dgx-a100", 4).size(), 1u) << "but not where a ring leaves the host";
  const PlanConstraints direct{{8, 4}, {"direct", "ring"}, 0, {}};
  EXPECT_EQ(orders_of("multi-ring", "dgx1-p100", 4, direct).size(), 0u) << "one step has no order";
  const PlanConstraints asked{{}, {}, 0, {}, {{7, 6, 5, 4, 3, 2, 1, 0}}};
  EXPECT_THAT(orders_of("multi-ring", "dgx1-p100", 4, asked), ElementsAre("7-6-5-4-3-2-1-0"));
}

TEST(CandidatePlans, DoNotCutSmallPayloads) {
  for (const Plan& plan :
       candidate_plans(modelled_problem("multi-ring", make_cluster(2, 2), 1024, 1), make_cluster(2, 2)))
    EXPECT_EQ(plan.chunk.value, 0u);
}

}  // namespace
}  // namespace polyring
