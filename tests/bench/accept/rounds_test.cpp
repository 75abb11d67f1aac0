// Rows of several rounds become one of each subject, and what drifts is told.
#include "bench/accept/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/accept/earlier_run.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CheckRow row(const std::string& subject, double value, Verdict verdict = Verdict::pass) {
  CheckRow row;
  row.check = "pairs.allreduce";
  row.subject = subject;
  row.verdict = verdict;
  row.why = "It is so.";
  row.quantity = "busbw";
  row.value = exact_timing(value);
  row.value->samples = {value, value};
  row.least = 1;
  row.attempts = 1;
  row.seconds = 2;
  return row;
}

TEST(Rounds, KeepTheWorstVerdictAndTheTrend) {
  std::vector<CheckRow> all;
  add_round(all, std::vector{row("a", 10), row("b", 5)}, 1);
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].value->samples.size(), 2) << "of the first round";
  add_round(all, std::vector{row("a", 11), row("b", 0.5, Verdict::fail)}, 2);
  add_round(all, std::vector{row("a", 12), row("b", 0.4, Verdict::fail), row("c", 7)}, 3);
  add_round(all, std::vector{row("b", 6), row("a", 13, Verdict::inconclusive)}, 4);
  ASSERT_EQ(all.size(), 3);
  EXPECT_THAT(*all[0].trend, ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(all[0].verdict, Verdict::inconclusive);
  EXPECT_EQ(all[0].why, "Round 4: It is so.");
  EXPECT_EQ(all[0].attempts, 4);
  EXPECT_EQ(all[0].seconds, 8);
  EXPECT_THAT(*all[1].trend, ElementsAre(5, 0.5, 0.4, 6));
  EXPECT_EQ(all[1].verdict, Verdict::fail);
  EXPECT_EQ(all[1].why, "Round 2: It is so.");
  EXPECT_EQ(all[1].value->median, 0.5) << "of the round that failed first";
  EXPECT_THAT(all[1].value->samples, IsEmpty());
  EXPECT_THAT(*all[2].trend, ElementsAre(7));
}

TEST(Rounds, KeepAllRowsOfASubject) {
  std::vector<CheckRow> all;
  const std::vector<CheckRow> twice{row("a", 1, Verdict::fail), row("a", 2, Verdict::fail)};
  add_round(all, twice, 1);
  add_round(all, twice, 2);
  ASSERT_EQ(all.size(), 2);
  EXPECT_THAT(*all[0].trend, ElementsAre(1, 1));
  EXPECT_THAT(*all[1].trend, ElementsAre(2, 2));
}

TEST(Rounds, ThatWereSkippedAtFirstAreMeasuredLater) {
  std::vector<CheckRow> all;
  CheckRow skipped = row("a", 0, Verdict::skipped);
  skipped.value.reset();
  add_round(all, std::vector{skipped}, 1);
  EXPECT_THAT(*all[0].trend, IsEmpty());
  add_round(all, std::vector{row("a", 3)}, 2);
  EXPECT_EQ(all[0].verdict, Verdict::pass);
  add_round(all, std::vector{skipped}, 3);
  EXPECT_EQ(all[0].verdict, Verdict::pass);
  EXPECT_THAT(*all[0].trend, ElementsAre(3));
}

/// What is in a journal after each check: by it a run goes on.
TEST(Rounds, AreWholeInTheirChanges) {
  ResultFile result;
  result.rows = std::vector<CheckRow>{};
  std::vector<CheckRow> all;
  const auto join = [&](const std::vector<CheckRow>& rows, int number) {
    const std::vector<CheckRow> before = all;
    add_round(all, rows, number);
    const RoundChange change = change_of(before, all, {number - 1, {"pairs.allreduce"}, 9.5 * number});
    EXPECT_TRUE(fits(result, change));
    apply(change, result);
    return change;
  };
  CheckRow other = row("c", 3);
  other.check = "all.allreduce";
  join({row("a", 10), row("b", 5)}, 1);
  EXPECT_EQ(join({other}, 1).rows.size(), 1);
  EXPECT_EQ(std::get<std::vector<CheckRow>>(result.rows), all);
  const RoundChange change = join({row("a", 11), row("b", 0.5, Verdict::fail)}, 2);
  ASSERT_EQ(change.rows.size(), 1) << "that has another verdict";
  EXPECT_EQ(change.rows[0].at, 1);
  EXPECT_EQ(change.points, (std::vector{TrendPoint{0, 11, 2, 4}}));
  CheckRow skipped = row("a", 0, Verdict::skipped);
  skipped.value.reset();
  EXPECT_EQ(join({skipped, row("b", 0.4, Verdict::fail)}, 3).points,
            (std::vector{TrendPoint{0, {}, 3, 6}, TrendPoint{1, 0.4, 3, 6}}));
  const auto& kept = std::get<std::vector<CheckRow>>(result.rows);
  ASSERT_EQ(kept.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(kept[i].trend, all[i].trend);
    EXPECT_EQ(kept[i].verdict, all[i].verdict);
    EXPECT_EQ(kept[i].attempts, all[i].attempts);
    EXPECT_EQ(kept[i].seconds, all[i].seconds);
  }
  EXPECT_EQ(result.rounds, (Rounds{2, {"pairs.allreduce"}, 28.5}));
  apply(change_of(all, {3, {}, 30}), result);
  EXPECT_EQ(kept, all);
  EXPECT_EQ(result.rounds->whole, 3);
}

TEST(Rounds, ThatLeaveARowOutDoNotFit) {
  ResultFile result;
  result.rows = std::vector<CheckRow>{row("a", 1)};
  EXPECT_TRUE(fits(result, {{}, {{1, row("b", 1)}}, {{1, 2.0, 1, 1}}}));
  EXPECT_FALSE(fits(result, {{}, {{2, row("b", 1)}}, {}}));
  EXPECT_FALSE(fits(result, {{}, {}, {{1, 2.0, 1, 1}}}));
  result.rows = std::vector<TrainRow>{};
  EXPECT_FALSE(fits(result, {}));
}

TEST(Rounds, AreOverWhereNoOtherFits) {
  const Seconds hour{3600};
  EXPECT_FALSE(is_over({0, {}, 5000}, hour)) << "one is whole at least";
  EXPECT_FALSE(is_over({2, {}, 2400}, hour));
  EXPECT_TRUE(is_over({2, {}, 2500}, hour));
  EXPECT_FALSE(is_over({2, {"links"}, 9000}, hour)) << "it comes to its end";
}

CheckRow of_check(const std::string& check, Verdict verdict, bool of_rounds) {
  CheckRow one = row("a", 1, verdict);
  one.check = check;
  if (of_rounds) one.trend = {1};
  return one;
}

TEST(EarlierRun, OfRoundsHasTheirRows) {
  ResultFile result;
  result.rounds = Rounds{1, {"links"}, 60};
  // Those of how it ended are of no round.
  result.rows = std::vector{of_check("links", Verdict::pass, true), of_check("correct", Verdict::error, true),
                            of_check("ranks.alive", Verdict::fail, false)};
  const EarlierRun earlier(result, "a.json.part");
  EXPECT_THAT(earlier.rows_of("links"), IsEmpty()) << "since the round is to be joined once";
  ASSERT_EQ(earlier.rows_of_rounds().size(), 2);
  EXPECT_EQ(earlier.rows_of_rounds()[1].check, "correct");
  EXPECT_EQ(earlier.rounds(), result.rounds);
  EXPECT_FALSE(EarlierRun().rounds());
  EXPECT_THAT(EarlierRun().rows_of_rounds(), IsEmpty());
}

/// Its last rows may have been cut off; who has died is said behind them.
TEST(EarlierRun, HasNotTheRowsOfItsLastCheck) {
  ResultFile result;
  result.rows =
      std::vector{of_check("links", Verdict::pass, false), of_check("correct", Verdict::pass, false),
                  of_check("ranks.alive", Verdict::fail, false)};
  const EarlierRun earlier(result, "a.json.part");
  EXPECT_EQ(earlier.rows_of("links").size(), 1);
  EXPECT_THAT(earlier.rows_of("correct"), IsEmpty());
}

TEST(Rounds, TellWhatDrifts) {
  std::vector<CheckRow> all;
  for (int round = 1; round <= 9; ++round) {
    CheckRow ratio = row("ranks", 1 + 0.02 * round);
    ratio.quantity = "time";
    ratio.least.reset();
    ratio.most = 2;
    add_round(all, std::vector{row("a", 10 - 0.21 * round), row("b", 10), ratio}, round);
    if (round == 5) {
      EXPECT_THAT(drifts(all), IsEmpty()) << "of so few rounds";
    }
  }
  EXPECT_THAT(
      drifts(all),
      ElementsAre(
          "pairs.allreduce of a: its busbw fell by 13 % from the first third of 9 rounds to the last.",
          "pairs.allreduce of ranks: its time rose by 12 % from the first third of 9 rounds to the last."));
}

}  // namespace
}  // namespace polyring
