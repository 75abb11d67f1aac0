// Verdicts of noisy samples.
#include "bench/accept/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace polyring {
namespace {

using ::testing::HasSubstr;

const Threshold kLeast{10, {}, "expected"};

std::vector<double> noisy(double median, double spread, int count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> noise(0, spread);
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(median * noise(random));
  return samples;
}

TEST(Decide, PassesAboveFailsBelowAndElseDoesNotKnow) {
  EXPECT_EQ(decide(noisy(11, 0.01, 20), kLeast), Verdict::pass);
  EXPECT_EQ(decide(noisy(9, 0.01, 20), kLeast), Verdict::fail);
  EXPECT_EQ(decide(noisy(10, 0.05, 20), kLeast), Verdict::inconclusive);
  EXPECT_EQ(decide({}, kLeast), Verdict::missing);
  EXPECT_EQ(decide(noisy(11, 0.01, 20), {}), Verdict::missing);
}

TEST(Decide, KnowsBothEnds) {
  const Threshold both{10, 12, ""};
  EXPECT_EQ(decide(noisy(11, 0.01, 20), both), Verdict::pass);
  EXPECT_EQ(decide(noisy(9, 0.01, 20), both), Verdict::fail);
  EXPECT_EQ(decide(noisy(13, 0.01, 20), both), Verdict::fail);
  EXPECT_EQ(decide(noisy(12, 0.05, 20), both), Verdict::inconclusive);
  EXPECT_EQ(decide(noisy(11, 0.01, 20), {{}, 12, ""}), Verdict::pass);
  EXPECT_EQ(decide(noisy(13, 0.01, 20), {{}, 12, ""}), Verdict::fail);
}

/// A value at the threshold itself must neither pass nor fail, with one exception in a thousand.
TEST(Decide, IsInconclusiveAtTheThreshold) {
  int decided = 0;
  constexpr int kRuns = 10'000;
  for (unsigned run = 0; run < kRuns; ++run) {
    const Verdict verdict = decide(noisy(10, 0.1, 25, run), kLeast);
    decided += verdict == Verdict::inconclusive ? 0 : 1;
  }
  EXPECT_LT(decided, 2 * kRuns / 1000);
}

TEST(Decide, NeedsEnoughSamplesToBeSure) {
  int decided = 0;
  for (unsigned run = 0; run < 1000; ++run)
    decided += decide(noisy(10, 0.1, kFewestSamples, run), kLeast) == Verdict::inconclusive ? 0 : 1;
  EXPECT_LT(decided, 6);
}

CheckRow judged(std::vector<double> samples, const Threshold& threshold) {
  CheckRow row;
  judge(row, {"busbw", "GB/s"}, std::move(samples), threshold);
  return row;
}

TEST(Judge, SaysWhyInOneSentence) {
  EXPECT_EQ(judged(std::vector<double>(20, 12.5), kLeast).why,
            "busbw is 12.5 GB/s (12.5 to 12.5): at least 10 GB/s (expected).");
  const CheckRow bad = judged(std::vector<double>(20, 5), {{}, 4, "spec site.toml:3"});
  EXPECT_EQ(bad.why, "busbw is 5 GB/s (5 to 5), and must be at most 4 GB/s (spec site.toml:3).");
  EXPECT_EQ(bad.verdict, Verdict::fail);
  EXPECT_EQ(*bad.most, 4);
  EXPECT_EQ(bad.value->samples.size(), 20);
  EXPECT_THAT(judged({9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11}, {10, 20, "x"}).why,
              HasSubstr("too noisy to tell whether it is from 10 to 20 GB/s (x)."));
  EXPECT_EQ(judged({1}, {}).why, "busbw is 1 GB/s, and nothing says what it must be.");
  EXPECT_EQ(judged({}, kLeast).why, "busbw was not measured.");
}

}  // namespace
}  // namespace polyring
