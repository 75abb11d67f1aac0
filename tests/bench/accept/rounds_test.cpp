// Rows of several rounds become one of each subject, and what drifts is told.
#include "bench/accept/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
