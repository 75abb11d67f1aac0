// Rows of results beside what a machine should give.
#include "bench/predict/judge.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/presets.hpp"

namespace polyring {
namespace {

using testing::HasSubstr;

/// Of nccl-tests: `ranks` spread over `hosts`; 0: the log does not name them.
ResultFile of_log(int ranks, int hosts, double us, const std::string& algorithm = "nccl") {
  ResultFile result;
  CollectiveRow row;
  row.algorithm = algorithm;
  row.implementation = "nccl-tests";
  row.ranks = ranks;
  row.nodes = hosts == 0 ? 1 : hosts;
  row.size_bytes = std::uint64_t{1} << 30;
  row.dtype = "float";
  row.op = "sum";
  row.source = Source::imported;
  set_time(row, exact_timing(us), "allreduce");
  result.rows = std::vector<CollectiveRow>{row};
  for (int rank = 0; hosts > 0 && rank < ranks; ++rank)
    result.placement.push_back({rank, fmt::format("host{}", rank * hosts / ranks)});
  return result;
}

Judgement judged(Judge judge, const ResultFile& result) {
  return judge.of(result, collective_rows(result).front());
}

const Cluster kDgx = preset("dgx-a100", 1);

TEST(Judge, GivesTheFractionOfTheBoundAndWhatLimits) {
  const ResultFile result = of_log(8, 1, 8000);
  const Judgement judgement = judged(Judge(kDgx), result);
  const Bound bound = allreduce_bound(kDgx, Bytes{std::uint64_t{1} << 30});
  ASSERT_TRUE(judgement.bound_fraction);
  EXPECT_NEAR(*judgement.bound_fraction, bound.time.value / 8e-3, 1e-9);
  EXPECT_EQ(judgement.limit, bound.cut);
  EXPECT_EQ(judgement.verdict, "no data") << "nothing is expected here";
  EXPECT_FALSE(judgement.expected_GBps);
}

TEST(Judge, TakesAsManyHostsAndGpusAsTheRunHad) {
  const double whole = *judged(Judge(kDgx), of_log(16, 2, 1e5)).bound_fraction;
  EXPECT_NEAR(*judged(Judge(kDgx), of_log(16, 0, 1e5)).bound_fraction, whole, 1e-12)
      << "without hosts the ranks fill them";
  const Cluster two = preset("dgx-a100", 2);
  EXPECT_NEAR(allreduce_bound(two, Bytes{std::uint64_t{1} << 30}).time.value / 0.1, whole, 1e-12);
  EXPECT_TRUE(judged(Judge(kDgx), of_log(4, 2, 1e6)).bound_fraction) << "2 of 8 GPUs on each";
}

TEST(Judge, SaysWhyThereIsNoBound) {
  EXPECT_THAT(judged(Judge(kDgx), of_log(32, 2, 1e5)).limit,
              HasSubstr("has 8 GPUs, and the run had 16 ranks a host"));
  EXPECT_THAT(judged(Judge(kDgx), of_log(12, 0, 1e5)).limit, HasSubstr("12 ranks do not fill hosts of 8"));
  EXPECT_THAT(judged(Judge(kDgx), of_log(2, 0, 1e5, "mpi")).limit, HasSubstr("on which hosts"));
  const Judgement beaten = judged(Judge(kDgx), of_log(8, 1, 1));
  EXPECT_FALSE(beaten.bound_fraction);
  EXPECT_THAT(beaten.limit, HasSubstr("does not hold"));
}

TEST(Judge, PassesOrFailsByTheLowEnd) {
  const auto expect = [](const Cluster&, Collective, const std::string& algorithm, Bytes) {
    return algorithm == "nccl" ? std::optional(JudgedBy{200, 240, "figures"}) : std::nullopt;
  };
  // 2^30 B in t us are 2^30 / t * 1.75 / 1e3 GB/s: 210 at 8948 us, 190 at 9890 us.
  const ResultFile good = of_log(8, 1, 8948);
  const Judgement pass = judged(Judge(kDgx, expect), good);
  EXPECT_EQ(pass.verdict, "pass");
  EXPECT_EQ(pass.expected_GBps, std::pair(200.0, 240.0));
  EXPECT_EQ(pass.basis, "figures");
  EXPECT_EQ(judged(Judge(kDgx, expect), of_log(8, 1, 9890)).verdict, "fail");
  EXPECT_EQ(judged(Judge(kDgx, expect), of_log(8, 1, 8948, "nccl:tree")).verdict, "no data");
  ResultFile unsure = good;
  auto& row = std::get<std::vector<CollectiveRow>>(unsure.rows).front();
  row.time_us.ci_high = 9890;
  EXPECT_EQ(judged(Judge(kDgx, expect), unsure).verdict, "undecided") << "its interval has the low end in it";
  row.wrong = 1;
  EXPECT_EQ(judged(Judge(kDgx, expect), unsure).verdict, "fail");
}

}  // namespace
}  // namespace polyring
