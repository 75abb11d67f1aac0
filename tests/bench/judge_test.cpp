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
ResultFile of_log(int ranks, int hosts, double us, const std::string& algorithm = "nccl",
                  const std::string& collective = "allreduce") {
  ResultFile result;
  result.collective = collective;
  CollectiveRow row;
  row.algorithm = algorithm;
  row.implementation = "nccl-tests";
  row.ranks = ranks;
  row.nodes = hosts == 0 ? 1 : hosts;
  row.size_bytes = std::uint64_t{1} << 30;
  row.dtype = "float";
  row.op = "sum";
  row.source = Source::imported;
  set_time(row, exact_timing(us), collective);
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
  ASSERT_TRUE(judgement.bound_fraction);
  EXPECT_NEAR(*judgement.bound_fraction, 1.75 * 1.073741824 / 8e-3 / 300, 1e-9);
  EXPECT_EQ(judgement.limit, "each GPU reaches the others only over 12 x NVLink of 25.0 GB/s: 300 GB/s");
  EXPECT_EQ(judgement.verdict, "no data") << "nothing is expected here";
  EXPECT_FALSE(judgement.expected_GBps);
}

/// Nobody reduces over NVLink and PCIe at once, as the bound of all links has it; switches may do more.
TEST(Judge, KnowsWhatTheImplementationCanUseTogether) {
  const Cluster dgx = preset("dgx-h100", 1);
  const double busbw_GBps = 1.75 * 1.073741824 / 4e-3;  // of 1 GiB on 8 ranks in 4 ms
  const ResultFile ring = of_log(8, 1, 4000, "nccl:ring");
  EXPECT_FALSE(judged(Judge(dgx), ring).bound_fraction) << "faster than its links";
  EXPECT_NEAR(*judged(Judge(dgx), of_log(8, 1, 8000, "nccl:ring")).bound_fraction, busbw_GBps / 2 / 450,
              1e-4);
  const Judgement switches = judged(Judge(dgx), of_log(8, 1, 4000, "nccl"));
  ASSERT_TRUE(switches.bound_fraction);
  EXPECT_NEAR(*switches.bound_fraction, busbw_GBps / 700, 1e-4);
  EXPECT_EQ(switches.limit, "(1 + 1/8) of the payload crosses the 450 GB/s of each GPU");
}

TEST(Judge, AddsNoPcieToNvlinksInAnyCollective) {
  const Cluster dgx = preset("dgx-h100", 1);
  const double busbw_GBps = 7.0 / 8 * 1.073741824 / 4e-3;
  for (const char* collective : {"reduce-scatter", "allgather", "alltoall"}) {
    for (const char* algorithm : {"nccl", "nccl:of-tomorrow"}) {  // nobody knows what the second one uses
      const Judgement judgement = judged(Judge(dgx), of_log(8, 1, 4000, algorithm, collective));
      ASSERT_TRUE(judgement.bound_fraction) << collective;
      EXPECT_NEAR(*judgement.bound_fraction, busbw_GBps / 450, 1e-4) << collective << ' ' << algorithm;
      EXPECT_THAT(judgement.limit, HasSubstr("450 GB/s"));
    }
  }
}

TEST(Judge, TakesAsManyHostsAndGpusAsTheRunHad) {
  const double whole = *judged(Judge(kDgx), of_log(16, 2, 1e5)).bound_fraction;
  EXPECT_NEAR(*judged(Judge(kDgx), of_log(16, 0, 1e5)).bound_fraction, whole, 1e-12)
      << "without hosts the ranks fill them";
  const Cluster two = preset("dgx-a100", 2);
  EXPECT_NEAR(*judged(Judge(two), of_log(16, 2, 1e5)).bound_fraction, whole, 1e-12);
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
  EXPECT_NEAR(pass.expected_fraction.value_or(0), 210.0 / 200, 0.001);
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
