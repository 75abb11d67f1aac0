// Checks find the fault that a made-up cluster has, name it, and find none where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "bench/accept/acceptance.hpp"
#include "bench/accept/expected_least.hpp"
#include "reports/verdicts.hpp"
#include "tests/bench/accept/fake_measurer.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeMeasurer;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_site;

class Given final : public GivenThresholds {
 public:
  std::optional<Threshold> of(const Judged& judged) const override {
    return judged.check == check ? std::optional(threshold) : std::nullopt;
  }
  std::optional<Bytes> size_of(std::string_view) const override { return size; }
  std::string check;
  Threshold threshold;
  std::optional<Bytes> size;
};

/// The rows of a check.
std::vector<CheckRow> run(
    std::string_view name, const Site& site, Measurer& measurer, CheckOptions options = {},
    const Given& given = {}, const std::function<bool(int)>& has_time = [](int) { return true; }) {
  const ExpectedLeast expected = expected_least;
  return find_check(name)->run(
      {measurer, site, given, expected, options, [](const std::string&) {}, has_time});
}

std::vector<std::string> subjects(const std::vector<CheckRow>& rows, Verdict verdict) {
  std::vector<std::string> names;
  for (const CheckRow& row : rows)
    if (row.verdict == verdict) names.push_back(row.subject);
  return names;
}

constexpr unsigned kRuns = 100;

TEST(AllChecks, PassOnAHealthyCluster) {
  for (const std::vector<int>& hosts :
       {std::vector{4, 4, 4, 4}, {2, 2}, {8, 8, 8}, {1, 1, 1, 1, 1, 1, 1, 1}}) {
    const Site site = make_site(hosts);
    int passed = 0;
    for (unsigned seed = 0; seed < kRuns; ++seed) {
      FakeMeasurer measurer(site, seed);
      std::vector<CheckRow> rows;
      for (const Check* check : checks()) {
        const std::vector<CheckRow> more = run(check->name, site, measurer);
        rows.insert(rows.end(), more.begin(), more.end());
      }
      // Nothing is known of how fast the inside of a few hosts must be.
      std::erase_if(rows, [](const CheckRow& row) { return row.check == "host.allreduce"; });
      passed += overall(rows) == Verdict::pass ? 1 : 0;
      if (overall(rows) != Verdict::pass && passed + 2 > static_cast<int>(seed))
        ADD_FAILURE() << summary(rows);
    }
    EXPECT_GE(passed, 99) << hosts.size();
  }
}

TEST(PairsAllreduce, NamesTheSlowHost) {
  const Site site = make_site({4, 4, 4, 4});
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    FakeMeasurer measurer(site, seed);
    const int host = static_cast<int>(seed % 4);
    measurer.host_link[host] = 5;
    const std::vector<CheckRow> rows = run("pairs.allreduce", site, measurer);
    EXPECT_THAT(subjects(rows, Verdict::fail), Contains(site.hosts[seed % 4]));
    EXPECT_EQ(summary(rows),
              "FAIL: 1 of 7 judgements failed: pairs.allreduce of " + site.hosts[seed % 4] + ".")
        << seed;
  }
}

TEST(PairsAllreduce, NamesTheSlowPair) {
  const Site site = make_site({4, 4, 4, 4});
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    FakeMeasurer measurer(site, seed);
    const int first = static_cast<int>(seed % 3);
    measurer.pair_link[{first, 3}] = 5;
    const std::vector<CheckRow> rows = run("pairs.allreduce", site, measurer);
    const std::string name = site.hosts[seed % 3] + " and node3";
    ASSERT_THAT(subjects(rows, Verdict::fail), ElementsAre(name)) << seed;
    const auto row = std::ranges::find(rows, name, &CheckRow::subject);
    EXPECT_THAT(row->remedy, HasSubstr("cables and switch ports between them"));
  }
}

TEST(PairsAllreduce, OfManyHostsFindsOneInAFewRounds) {
  const Site site = make_site(std::vector<int>(100, 1));
  FakeMeasurer measurer(site, 1);
  measurer.host_link[42] = 5;
  CheckOptions options;
  options.pair_rounds = 8;
  const std::vector<CheckRow> rows = run("pairs.allreduce", site, measurer, options);
  EXPECT_THAT(subjects(rows, Verdict::fail), Contains("node42"));
  EXPECT_THAT(summary(rows), HasSubstr("1 of 401 judgements failed: pairs.allreduce of node42."));
  EXPECT_LE(measurer.orders, 8 + 2 + 4);
}

TEST(PairsAllreduce, SaysWhereAllAreSlow) {
  const Site site = make_site({2, 2, 2, 2});
  FakeMeasurer measurer(site, 1);
  measurer.link_GBps = 3;
  const std::vector<CheckRow> rows = run("pairs.allreduce", site, measurer);
  EXPECT_THAT(subjects(rows, Verdict::fail), Contains("all hosts"));
}

/// Whose true value is the threshold is not judged.
TEST(PairsAllreduce, IsInconclusiveAtTheThreshold) {
  const Site site = make_site({1, 1});
  Given given;
  given.check = "pairs.allreduce";
  int inconclusive = 0;
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    FakeMeasurer measurer(site, seed);
    measurer.overhead_us = 0;
    given.threshold = {10, {}, "spec"};
    const std::vector<CheckRow> rows = run("pairs.allreduce", site, measurer, {}, given);
    inconclusive += rows.front().verdict == Verdict::inconclusive ? 1 : 0;
    if (rows.front().verdict == Verdict::inconclusive) {
      EXPECT_EQ(rows.front().attempts, CheckOptions{}.attempts);
    }
  }
  EXPECT_GE(inconclusive, 98);
}

TEST(HostsAlike, NamesTheHostWithFewerRanks) {
  const Site site = make_site({4, 4, 3, 4});
  FakeMeasurer measurer(site, 1);
  const std::vector<CheckRow> rows = run("hosts.alike", site, measurer);
  ASSERT_THAT(subjects(rows, Verdict::fail), ElementsAre("node2"));
  EXPECT_EQ(rows.front().why, "3 ranks, and 3 of 4 hosts have 4.");
}

TEST(Stragglers, AreNamed) {
  const Site site = make_site({4, 4, 4, 4});
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    FakeMeasurer measurer(site, seed);
    const Rank rank = static_cast<int>(seed % 16);
    measurer.slow_rank[rank] = 1.2;
    EXPECT_THAT(subjects(run("stragglers", site, measurer), Verdict::fail),
                ElementsAre(fmt::format("rank {} on node{}", rank, rank / 4)));
  }
}

TEST(Stragglers, MayBeHalfOfTheRanks) {
  const Site site = make_site({4, 4});
  FakeMeasurer measurer(site, 1);
  for (Rank rank = 4; rank < 8; ++rank) measurer.slow_rank[rank] = 1.3;
  EXPECT_EQ(subjects(run("stragglers", site, measurer), Verdict::fail).size(), 4);
}

/// Once wrong is bad, however fast the pair is later.
TEST(PairsAllreduce, OfAWrongResultStayBad) {
  const Site site = make_site({1, 1, 1, 1});
  class WrongOnce final : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
      auto results = FakeMeasurer::allreduce(groups, work);
      if (orders == 1) results.front() = {{}, 3};
      return results;
    }
  };
  WrongOnce measurer(site, 1);
  const std::vector<CheckRow> rows = run("pairs.allreduce", site, measurer);
  ASSERT_EQ(subjects(rows, Verdict::fail).size(), 1);
  const auto row = std::ranges::find(rows, Verdict::fail, &CheckRow::verdict);
  EXPECT_EQ(row->why, "The result has 3 wrong elements.");
}

TEST(Correct, NamesTheRankThatMakesResultsWrong) {
  const Site site = make_site({4, 4, 4, 4});
  for (Rank rank = 0; rank < 16; ++rank) {
    FakeMeasurer measurer(site, 1);
    measurer.wrong_rank = {rank};
    const std::vector<CheckRow> rows = run("correct", site, measurer);
    EXPECT_THAT(subjects(rows, Verdict::fail), Contains(fmt::format("rank {} on node{}", rank, rank / 4)));
    EXPECT_EQ(rows.front().hosts.size(), 1);  // first: few rows are printed
  }
}

TEST(Correct, TriesEachTypeAndOperationWithEachAlgorithm) {
  const Site site = make_site({4, 4});
  FakeMeasurer measurer(site, 1);
  measurer.wrong_rank = {5};
  measurer.wrong_case = [](const std::string& algorithm, const ResultCase& one) {
    return algorithm == "tree" && one.kind == ElementKind::bfloat16 && one.op == ReduceOp::prod;
  };
  const std::vector<CheckRow> rows = run("correct", site, measurer);
  EXPECT_THAT(subjects(rows, Verdict::fail), ElementsAre("tree"));
  const auto row = std::ranges::find(rows, Verdict::fail, &CheckRow::verdict);
  EXPECT_EQ(row->why, "Wrong results on 8 of 8 ranks: bfloat16 prod of 4012B.");
}

TEST(Correct, TriesFewCasesWhereTheBudgetHasNoMoreTime) {
  const Site site = make_site({2, 2});
  FakeMeasurer measurer(site, 1);
  for (const CheckRow& row : run("correct", site, measurer, {}, {}, [](int) { return false; }))
    EXPECT_THAT(row.why, HasSubstr(row.subject == "multi-ring" ? "31 cases had" : "2 cases had"));
}

TEST(Timed, ResultsThatAreWrongFail) {
  const Site site = make_site({2, 2});
  FakeMeasurer measurer(site, 1);
  measurer.wrong_rank = {3};
  for (const char* check : {"pairs.allreduce", "host.allreduce", "all.allreduce", "repeatability", "dips"}) {
    const std::vector<CheckRow> rows = run(check, site, measurer);
    EXPECT_THAT(subjects(rows, Verdict::fail), Not(IsEmpty())) << check;
  }
}

/// Everything is slower by so much, now and then.
class Disturbed final : public FakeMeasurer {
 public:
  using FakeMeasurer::FakeMeasurer;
  std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
    std::vector<GroupResult> results = FakeMeasurer::allreduce(groups, work);
    if (orders == 1)
      for (double& us : results.front().us) us *= 3;
    return results;
  }
  std::vector<std::vector<double>> compute_us(Seconds piece, int times) override {
    std::vector<std::vector<double>> us = FakeMeasurer::compute_us(piece, times);
    for (std::size_t time = 0; time < us.front().size(); ++time)
      for (std::vector<double>& of_rank : us) of_rank[time] *= time * 5 % 7 < 3 ? 2 : 1;
    return us;
  }
};

TEST(HostAllreduce, WhatIsSlowForAWhilePassesInTheEnd) {
  const Site site = make_site({4, 4, 4, 4});
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    Disturbed measurer(site, seed);
    const std::vector<CheckRow> rows = run("host.allreduce", site, measurer);
    EXPECT_THAT(rows, Each(Field(&CheckRow::verdict, Verdict::pass)));
    EXPECT_GT(rows.front().attempts, 1);
  }
}

TEST(Train, IsShownBesideTheModel) {
  const Site site = make_site({4, 4, 4, 4});
  FakeMeasurer measurer(site, 1);
  measurer.efficiency = 0.6;
  CheckOptions roomy;
  roomy.most_payload = {128 << 20};
  const std::vector<CheckRow> rows = run("train", site, measurer, roomy);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].verdict, Verdict::shown) << rows[0].why;
  EXPECT_EQ(rows[0].subject, "resnet50 on 16 ranks");
  EXPECT_NEAR(rows[0].value->median, 60, 1e-9);
  EXPECT_THAT(rows[0].why, AllOf(HasSubstr("with an efficiency of 60.0 %"), HasSubstr("the model says ")));
  EXPECT_EQ(overall(rows), Verdict::missing);  // what is shown alone is no verdict
  const Site of_one_rank = make_site({1, 1, 1, 1});
  FakeMeasurer fake(of_one_rank, 1);
  EXPECT_THAT(run("train", of_one_rank, fake, roomy)[0].why, HasSubstr("the model says "));
  Site unknown = site;
  unknown.cluster = {};
  EXPECT_THAT(run("train", unknown, measurer, roomy)[0].why, HasSubstr("nothing is known of the hosts"));
}

TEST(Train, IsLeftOutWhereItDoesNotFit) {
  const Site site = make_site({2, 2}, 0.01);
  FakeMeasurer measurer(site, 1);
  CheckOptions options;
  options.model = "gpt2-xl";
  const std::vector<CheckRow> rows = run("train", site, measurer, options);
  EXPECT_EQ(rows[0].verdict, Verdict::skipped);
  EXPECT_THAT(rows[0].why, HasSubstr("Gradients of gpt2-xl take"));
  options.model.clear();
  options.most_payload = {128 << 20};
  const std::vector<CheckRow> late =
      run("train", site, measurer, options, {}, [](int turns) { return turns < 30; });
  EXPECT_EQ(late[0].verdict, Verdict::skipped);
  EXPECT_THAT(late[0].why, HasSubstr("for which there is no time"));
  const Site fast = make_site({2, 2});
  options.model = "deeplabv3plus";
  options.most_payload = {1 << 30};
  const std::vector<CheckRow> unpublished = run("train", fast, measurer, options);
  EXPECT_EQ(unpublished[0].verdict, Verdict::skipped);
  EXPECT_THAT(unpublished[0].why, HasSubstr("Nobody has published how fast a P100 trains deeplabv3plus"));
  EXPECT_EQ(measurer.orders, 0);
}

/// Emulated hosts have one machine, whose cores may be slow for a while.
TEST(HostAllreduce, MeasuresHostsThatShareCoresByTurns) {
  Site site = make_site({4, 4, 4, 4});
  site.source = Source::emulated;
  for (const int slow_until : {1, 2, 3, 6, 10, 16, 24}) {
    class SlowAtFirst final : public FakeMeasurer {
     public:
      SlowAtFirst(const Site& of, int until) : FakeMeasurer(of, 1), until_(until) {}
      std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups,
                                         const GroupWork& work) override {
        inside_GBps = orders < until_ ? 50 : 100;
        return FakeMeasurer::allreduce(groups, work);
      }

     private:
      int until_;
    };
    SlowAtFirst measurer(site, slow_until);
    CheckOptions options;
    options.attempts = 1;
    const std::vector<CheckRow> rows = run("host.allreduce", site, measurer, options);
    EXPECT_THAT(subjects(rows, Verdict::fail), IsEmpty()) << slow_until;
    EXPECT_THAT(rows, Each(Field(&CheckRow::attempts, 1)));
    EXPECT_EQ(measurer.orders, 4 * 8);
  }
}

TEST(Stragglers, AreToldFromWhatSlowsAllRanks) {
  const Site site = make_site({4, 4, 4, 4});
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    Disturbed measurer(site, seed);
    measurer.slow_rank[5] = 1.2;
    const std::vector<CheckRow> rows = run("stragglers", site, measurer);
    EXPECT_THAT(subjects(rows, Verdict::fail), ElementsAre("rank 5 on node1"));
    EXPECT_THAT(subjects(rows, Verdict::inconclusive), IsEmpty());
  }
}

TEST(HostAllreduce, NamesAHostThatIsSlowInside) {
  const Site site = make_site({4, 4, 4, 4});
  class SlowInside final : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
      auto results = FakeMeasurer::allreduce(groups, work);
      for (std::size_t i = 0; i < groups.size(); ++i)
        if (groups[i] == RankGroup{8, 9, 10, 11})
          for (double& us : results[i].us) us *= 2;
      return results;
    }
  };
  SlowInside measurer(site, 1);
  EXPECT_THAT(subjects(run("host.allreduce", site, measurer), Verdict::fail), ElementsAre("node2"));
}

TEST(Dips, NameTheSize) {
  const Site site = make_site({2, 2, 2, 2});
  class Dip final : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
      auto results = FakeMeasurer::allreduce(groups, work);
      if (work.size == Bytes{1 << 20})
        for (double& us : results.front().us) us *= 3;
      return results;
    }
  };
  Dip measurer(site, 1);
  EXPECT_THAT(subjects(run("dips", site, measurer), Verdict::fail), ElementsAre("1MiB"));
}

TEST(Repeatability, FailsWhereRoundsDiffer) {
  const Site site = make_site({2, 2, 2, 2});
  class Changing final : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    std::vector<GroupResult> allreduce(const std::vector<RankGroup>& groups, const GroupWork& work) override {
      auto results = FakeMeasurer::allreduce(groups, work);
      if (orders % 3 == 2)
        for (double& us : results.front().us) us *= 2;
      return results;
    }
  };
  Changing measurer(site, 1);
  EXPECT_THAT(subjects(run("repeatability", site, measurer), Verdict::fail), ElementsAre("all hosts"));
}

TEST(Thresholds, SayWhichPayloadIsMeasured) {
  const Site site = make_site({2, 2});
  FakeMeasurer measurer(site, 1);
  Given given;
  given.size = Bytes{12 << 10};
  for (const char* check : {"host.allreduce", "pairs.allreduce", "all.allreduce", "repeatability"})
    EXPECT_EQ(run(check, site, measurer, {}, given).front().size_bytes, 12 << 10) << check;
  CheckOptions options;
  given.size = Bytes{options.most_payload.value + 4};  // does not fit into the memory
  EXPECT_LE(run("all.allreduce", site, measurer, options, given).front().size_bytes,
            options.most_payload.value);
}

/// What a check throws is its row; the others go on.
TEST(RunChecks, KeepGoingAndFailClosed) {
  const Site site = make_site({2, 2});
  class Broken final : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    std::vector<std::vector<double>> compute_us(Seconds, int) override {
      throw Error(ExitCode::not_available, "no clock here");
    }
  };
  Broken measurer(site, 1);
  const Given given;
  const ExpectedLeast expected = expected_least;
  const CheckOptions options;
  const Checking checking{measurer, site, given, expected, options, [](const std::string&) {}};
  std::vector<CheckRow> all;
  double elapsed = 0;
  const Budget budget({10}, [&] { return Seconds{elapsed += 3}; });
  const std::vector<PlannedCheck> planned{{find_check("hosts.alike"), false},
                                          {find_check("stragglers"), false},
                                          {find_check("pairs.allreduce"), false},
                                          {find_check("repeatability"), false},
                                          {find_check("dips"), true}};
  const ExitCode code =
      run_checks(planned, checking, budget,
                 {[](const Check&) {},
                  [&](std::vector<CheckRow> rows) { all.insert(all.end(), rows.begin(), rows.end()); }});
  EXPECT_EQ(code, ExitCode::not_available);
  EXPECT_THAT(
      all, ElementsAre(
               AllOf(Field(&CheckRow::check, "hosts.alike"), Field(&CheckRow::verdict, Verdict::pass)),
               AllOf(Field(&CheckRow::check, "stragglers"), Field(&CheckRow::verdict, Verdict::error),
                     Field(&CheckRow::why, "The check broke: no clock here.")),
               AllOf(Field(&CheckRow::check, "pairs.allreduce"), Field(&CheckRow::verdict, Verdict::pass)),
               AllOf(Field(&CheckRow::check, "repeatability"), Field(&CheckRow::verdict, Verdict::skipped)),
               AllOf(Field(&CheckRow::check, "dips"), Field(&CheckRow::verdict, Verdict::missing))));
  EXPECT_EQ(exit_code(all, code), ExitCode::not_available);
}

TEST(RunChecks, WhatIsRepeatedLeavesTimeForTheChecksBehindIt) {
  const Site site = make_site({1, 1});
  FakeMeasurer measurer(site, 1);
  Given given;  // which nobody can be sure about
  given.check = "pairs.allreduce";
  given.threshold = {10, {}, "spec"};
  measurer.overhead_us = 0;
  const ExpectedLeast expected = expected_least;
  CheckOptions options;
  options.attempts = 1000;
  options.turn = {1};
  const Checking checking{measurer, site, given, expected, options, [](const std::string&) {}};
  // A second an order.
  const Budget budget({30}, [&] { return Seconds{static_cast<double>(measurer.orders)}; });
  std::vector<CheckRow> all;
  run_checks({{find_check("pairs.allreduce"), false}, {find_check("repeatability"), false}}, checking, budget,
             {[](const Check&) {},
              [&](std::vector<CheckRow> rows) { all.insert(all.end(), rows.begin(), rows.end()); }});
  EXPECT_GT(all.front().attempts, 10);
  EXPECT_EQ(all.back().check, "repeatability");
  EXPECT_EQ(all.back().verdict, Verdict::pass);
  EXPECT_LE(measurer.orders, 31);
}

TEST(Turns, FitTheBudget) {
  const Site site = make_site({4, 4, 4, 4});
  std::vector<PlannedCheck> planned;
  int turns = 0;
  for (const Check* check : checks()) {
    planned.push_back({check, false});
    turns += check->turns(site, {});
  }
  EXPECT_EQ(turn_in({}, planned, site, {}).value, 1);
  EXPECT_LT(turns * turn_in({60}, planned, site, {}).value, 40);
  EXPECT_GT(turns * turn_in({60}, planned, site, {}).value, 10);
  EXPECT_EQ(turn_in({0.001}, planned, site, {}).value, 0.2);
}

}  // namespace
}  // namespace polyring
