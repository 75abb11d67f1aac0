// The text of the Intel MPI Benchmarks, Gloo's benchmark, mpiBench and PARAM.
#include <fmt/format.h>

#include "base/files.hpp"
#include "reports/wrong_results.hpp"
#include "tests/reports/logs.hpp"

namespace polyring {
namespace {

TEST(ImbLog, RealAllreduceOfTwo) {
  POLYRING_LOG(path, "o16");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 19u) << "without that of 0 bytes";
  EXPECT_TRUE(notes_say(files[0], "1 row of 0 bytes"));
  const CollectiveRow row = row_of(files[0], 1048576);
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(row.time_us, exact_timing(130.80));
  EXPECT_NEAR(row.busbw_GBps, 8.01664, 1e-4);
  EXPECT_EQ(row.timing, TimingMethod::osu) << "a barrier between calls";
  EXPECT_EQ(row.implementation, "IMB 2021.11");
  EXPECT_EQ(row.dtype, "float");
  EXPECT_EQ(row_of(files[0], 8192).time_us.median, 3.91);
  EXPECT_FALSE(files[0].partial);
  EXPECT_EQ(files[0].command, "imb/IMB-MPI1 Allreduce -npmin 2 -iter 50 -msglog 0:20 ");
}

TEST(ImbLog, SeveralNumbersOfProcesses) {
  const auto files = read_small_log("imb.txt");
  ASSERT_EQ(files.size(), 2u);
  ASSERT_EQ(rows_of(files[0]).size(), 4u);
  EXPECT_EQ(rows_of(files[0])[1].ranks, 2);
  EXPECT_EQ(rows_of(files[0])[1].time_us.median, 23.50);
  EXPECT_EQ(rows_of(files[0])[3].ranks, 4);
  EXPECT_EQ(rows_of(files[0])[3].time_us.median, 25.50);
  EXPECT_EQ(rows_of(files[0])[3].dtype, "double");
  EXPECT_EQ(rows_of(files[0])[3].count, 8192u);
  EXPECT_TRUE(notes_say(files[0], "2 rows of 0 bytes"));
  EXPECT_TRUE(notes_say(files[0], "no such rows: Bcast"));
  EXPECT_EQ(files[1].collective, "reduce-scatter");
  EXPECT_EQ(rows_of(files[1])[1].size_bytes, 2u * 65536) << "from 2019 on, a block's";
  EXPECT_EQ(rows_of(files[1])[3].size_bytes, 4u * 65536);
  EXPECT_EQ(parse_log(small_log("imb.txt"), "x.log", {.ranks = 2}).size(), 2u);
  EXPECT_REFUSED(small_log("imb.txt"), "its allreduce had 2 ranks and not 3", {.ranks = 3});
}

TEST(ImbLog, WhatVersionsAndOptionsChange) {
  const std::string text = small_log("imb.txt");
  const auto timing_of = [](const std::string& log) {
    return *rows_of(parse_log(log, "x.log")[0])[0].timing;
  };
  EXPECT_EQ(timing_of(text), TimingMethod::osu);
  EXPECT_EQ(timing_of(with(text, "Bcast Reduce", "-sync off Reduce")), TimingMethod::back_to_back);
  EXPECT_EQ(timing_of(with(text, "Bcast Reduce", "-sync on Reduce")), TimingMethod::osu);
  EXPECT_EQ(timing_of(with(text, "2021.11,", "4.1 Update 1,")), TimingMethod::back_to_back);
  const auto of_3 = parse_log(
      with(text, "Intel(R) MPI Benchmarks 2021.11,", "Intel (R) MPI Benchmark Suite V3.2,"), "x.log");
  EXPECT_EQ(rows_of(of_3[0])[1].implementation, "IMB 3.2");
  EXPECT_EQ(rows_of(of_3[0])[1].time_us.median, 23.50);
  const auto of_2018 = parse_log(with(text, "2021.11,", "2018.1,"), "x.log");
  EXPECT_EQ(rows_of(of_2018[1])[1].size_bytes, 65536u) << "before 2019, of all blocks";
  EXPECT_EQ(rows_of(of_2018[1])[1].implementation, "IMB 2018.1");
  EXPECT_TRUE(
      notes_say(parse_log(with(text, "MPI-1 part", "MPI-1 part (GPU)"), "x.log")[0], "device memory"));
}

TEST(ImbLog, DefectsAndRowsOutOfTime) {
  const std::string text = small_log("imb.txt");
  const std::string row = "           64         1000         3.25         3.75         3.50";
  const auto defects = [&](const std::string& found) {
    const std::string header =
        "t_avg[usec]\n            0         1000         2.25         2.75         2.50\n" + row + "\n";
    return parse_log(
        with(text, header,
             with(with(header, "usec]\n", "usec]      defects\n"), "3.50\n", "3.50" + found + "\n")),
        "x.log")[0];
  };
  EXPECT_EQ(rows_of(defects("         0.00"))[0].wrong, 0u);
  EXPECT_TRUE(notes_say(defects("         0.50"), "Wrong results: defects in line "));
  EXPECT_EQ(wrong_results(defects("         0.50")).rows, 1u);
  const auto out_of_time = parse_log(
      with(text, row, "           64 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over"),
      "x.log");
  EXPECT_EQ(rows_of(out_of_time[0]).size(), 3u);
  EXPECT_TRUE(notes_say(out_of_time[0], "1 row torn"));
}

TEST(GlooLog, RealRingChunked) {
  POLYRING_LOG(path, "o17");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 1u);
  const CollectiveRow row = row_of(files[0], 16000);
  EXPECT_EQ(row.algorithm, "gloo:ring_chunked");
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(row.count, 4000u);
  EXPECT_EQ(row.dtype, "float");
  EXPECT_EQ(row.time_us, exact_timing(261));
  EXPECT_NEAR(row.algbw_GBps, 0.061303, 1e-6);
  EXPECT_TRUE(notes_say(files[0], "2^30"));
  EXPECT_TRUE(notes_say(files[0], "medians over rank 0's calls"));
  EXPECT_FALSE(files[0].partial);
}

TEST(GlooLog, SeveralSizes) {
  const auto files = read_small_log("gloo.txt");
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(rows_of(files[0]).size(), 3u);
  EXPECT_EQ(row_of(files[0], 400000).time_us.median, 205);
  EXPECT_EQ(row_of(files[0], 400000).algorithm, "gloo:ring");
  EXPECT_EQ(row_of(files[0], 400000).ranks, 4);
  EXPECT_TRUE(notes_say(files[0], "2 buffers of its own"));
  EXPECT_TRUE(notes_say(files[0], "Gloo calls it new_allreduce_ring"));
  std::string half = small_log("gloo.txt");
  for (const char* size : {"        400 ", "       4000 ", "     400000 "}) {
    std::string halved(12, ' ');
    const std::string number = fmt::format("{} ", std::stoul(size) / 2);
    half = with(half, size, halved.replace(12 - number.size(), number.size(), number));
  }
  EXPECT_EQ(row_of(parse_log(half, "x.log")[0], 200000).dtype, "half");
}

TEST(GlooLog, InNanosecondsBefore2021) {
  const auto files = read_small_log("gloo_old.txt");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allgather");
  const CollectiveRow row = row_of(files[0], 1600);
  EXPECT_EQ(row.time_us.median, 12.5);
  EXPECT_EQ(row.count, 100u);
  EXPECT_EQ(row.algorithm, "gloo:ring");
  EXPECT_TRUE(notes_say(files[0], "2 threads"));
  EXPECT_TRUE(notes_say(files[0], "no end mark"));
  EXPECT_FALSE(files[0].partial);
}

TEST(GlooLog, WrongResultsAreNoted) {
  const auto files =
      parse_log(small_log("gloo.txt") + "       VERIFY ERRORS\n\nMismatch at index: 0\n\n====\n", "x.log");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(notes_say(files[0], "Wrong results: errors from line"));
  EXPECT_TRUE(files[0].partial);
}

TEST(GlooLog, OthersAreNamed) {
  EXPECT_REFUSED(with(small_log("gloo.txt"), "NEW_ALLREDUCE_RING", "ALLREDUCE_LOCAL"),
                 "only allreduce_local (line ");
  EXPECT_REFUSED(with(small_log("gloo.txt"), "NEW_ALLREDUCE_RING", "ALLTOALL_V"), "only alltoall_v (line ");
  EXPECT_REFUSED(with(small_log("gloo.txt"), "NEW_ALLREDUCE_RING", ""),
                 "only a table that does not say of what (line ");
}

TEST(MpiBenchLog, RealAllreduceOfTwo) {
  POLYRING_LOG(path, "o18");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 14u);
  const CollectiveRow row = row_of(files[0], 65536);
  EXPECT_EQ(row.time_us, exact_timing(13.3912));
  EXPECT_EQ(row.ranks, 2);
  EXPECT_EQ(row.nodes, 1);
  EXPECT_EQ(row.dtype, "double");
  EXPECT_EQ(row.implementation, "mpiBench 1.5");
  EXPECT_EQ(row.timing, TimingMethod::osu);
  EXPECT_EQ(row_of(files[0], 8).time_us.median, 0.4026);
  EXPECT_FALSE(files[0].partial);
  EXPECT_EQ(files[0].placement.size(), 2u);
}

TEST(MpiBenchLog, SeveralCollectivesAndCommunicators) {
  const auto files = read_small_log("mpibench.txt");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].collective, "allgather");
  ASSERT_EQ(rows_of(files[0]).size(), 2u);
  EXPECT_EQ(row_of(files[0], 32).time_us.median, 1.5);
  EXPECT_EQ(row_of(files[0], 32).count, 8u);
  EXPECT_EQ(row_of(files[0], 32).nodes, 2);
  EXPECT_EQ(row_of(files[1], 1024).time_us.median, 4.5);
  EXPECT_EQ(rows_of(files[1]).size(), 2u);
  EXPECT_TRUE(notes_say(files[1], "Bcast (line 6), Allreduce of CartDim-1of2 (line "));
  const auto wrong = parse_log(
      with(small_log("mpibench.txt"), "Message buffers",
           "Receive buffer corruption detected on rank 0 at rbuffer[0] from rank 1\nMessage buffers"),
      "x.log");
  EXPECT_TRUE(notes_say(wrong[1], "Wrong results"));
}

TEST(ParamLog, OfToday) {
  const auto files = read_small_log("param.txt");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 2u);
  const CollectiveRow row = row_of(files[0], 1048576);
  EXPECT_EQ(row.ranks, 4);
  EXPECT_EQ(row.time_us, exact_timing(90.5));
  EXPECT_NEAR(row.busbw_GBps, 17.380, 0.001);
  EXPECT_EQ(row.algorithm, "nccl");
  EXPECT_EQ(row.dtype, "float");
  EXPECT_TRUE(notes_say(files[0], "medians over ranks of their means"));
  const auto told = parse_log("export NCCL_ALGO=Tree\n" + small_log("param.txt"), "x.log");
  EXPECT_EQ(rows_of(told[0])[0].algorithm, "nccl:tree");
}

TEST(ParamLog, OfBefore2026) {
  const auto files = read_small_log("param_old.txt");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allgather");
  const CollectiveRow row = row_of(files[0], 16777216);
  EXPECT_EQ(row.ranks, 4) << "busbw / algbw is 0.75";
  EXPECT_EQ(row.time_us.median, 400.5);
  EXPECT_EQ(row.algorithm, "gloo");
  EXPECT_EQ(row.dtype, "bfloat16");
  EXPECT_TRUE(notes_say(files[0], "busbw / algbw does: 4"));
  const std::string torn = with(small_log("param_old.txt"), "400.5", "40.5");
  EXPECT_TRUE(notes_say(parse_log(torn, "x.log", {.ranks = 4})[0], "1 row torn or contradictory"));
  EXPECT_REFUSED(with(small_log("param_old.txt"), "-all_gather_base-bfloat16", ""), "", {.ranks = 4});
}

TEST(MpiLogs, AbortedRunsAreRefused) {
  const std::string failure = "mpirun noticed that process rank 1 with PID 7 exited on signal 9\n";
  for (const auto& [name, before] :
       {std::pair("imb.txt", "        65536"), std::pair("gloo.txt", "     400000"),
        std::pair("mpibench.txt", "Message buffers"),
        std::pair("param.txt", "\tCOMMS-RES-all_reduce-float32-nightly           1048576")}) {
    const std::string text = small_log(name);
    EXPECT_REFUSED(text.substr(0, text.find(before)) + failure, ": the run was aborted: 'mpirun noticed");
  }
}

}  // namespace
}  // namespace polyring
