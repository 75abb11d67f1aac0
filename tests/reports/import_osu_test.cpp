// OSU's text.
#include <fmt/format.h>

#include "base/files.hpp"
#include "tests/reports/logs.hpp"

namespace polyring {
namespace {

TEST(OsuLog, PlainWithoutRanks) {
  POLYRING_LOG(path, "o11");
  EXPECT_REFUSED(read_file(path),
                 "line 2: the log does not say how many ranks its allreduce had; say so with --ranks");
  const auto files = import_log(path, {.ranks = 64});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 19u);
  const CollectiveRow row = row_of(files[0], 1048576);
  EXPECT_EQ(row.ranks, 64);
  EXPECT_EQ(row.time_us, exact_timing(7403.33));
  EXPECT_NEAR(row.algbw_GBps, 0.14164, 1e-5);
  EXPECT_NEAR(row.busbw_GBps, 0.14164 * 2 * 63 / 64, 1e-5);
  EXPECT_EQ(row.timing, TimingMethod::osu);
  EXPECT_EQ(row.implementation, "OSU 5.6.2");
  EXPECT_EQ(row.algorithm, "mpi");
  EXPECT_EQ(row.dtype, "float");
  EXPECT_EQ(row.op, "sum");
  EXPECT_EQ(row.wrong, std::nullopt);
  EXPECT_TRUE(notes_say(files[0], "no end mark"));
}

TEST(OsuLog, FullOnGpus) {
  POLYRING_LOG(path, "o12");
  const auto files = import_log(path, {.ranks = 16});
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(rows_of(files[0]).size(), 24u);
  EXPECT_EQ(row_of(files[0], 4).time_us.median, 34.31);
  EXPECT_EQ(row_of(files[0], 33554432).time_us.median, 44592.17);
  EXPECT_EQ(rows_of(files[0])[0].implementation, "OSU 5.7");
  EXPECT_EQ(rows_of(files[0])[0].algorithm, "mpi");
  EXPECT_TRUE(notes_say(files[0], "device memory: MPI-CUDA"));
}

TEST(OsuLog, TwoOf25Tests) {
  POLYRING_LOG(path, "o13");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].collective, "allgather");
  EXPECT_EQ(files[1].collective, "allreduce");
  ASSERT_EQ(rows_of(files[1]).size(), 19u);
  const CollectiveRow row = row_of(files[1], 1048576);
  EXPECT_EQ(row.time_us.median, 135372.74);
  EXPECT_EQ(row.ranks, 8);
  EXPECT_TRUE(notes_say(files[1], "that of the command line: 8"));
  EXPECT_NE(files[1].command.find("osu_allreduce"), std::string::npos);
  ASSERT_EQ(rows_of(files[0]).size(), 21u);
  EXPECT_EQ(row_of(files[0], 8u << 20).time_us.median, 61322.65) << "blocks of 1 MiB";
  EXPECT_EQ(row_of(files[0], 8u << 20).count, 1u << 20);
  EXPECT_TRUE(notes_say(files[1], "no such rows: MPI_Get_accumulate"));
}

TEST(OsuLog, FullWithPrefixes) {
  POLYRING_LOG(path, "o15");
  const auto files = import_log(path, {.ranks = 2});
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(rows_of(files[0]).size(), 15u);
  EXPECT_EQ(row_of(files[0], 65536).time_us.median, 11.88);
  EXPECT_EQ(row_of(files[0], 65536).dtype, "float");
  EXPECT_EQ(rows_of(files[0])[0].implementation, "OSU 7.4");
}

TEST(OsuLog, TypesValidationAndPercentiles) {
  const auto files = read_small_log("osu.txt");
  ASSERT_EQ(files.size(), 2u);
  const auto& rows = rows_of(files[0]);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[1].dtype, "int32");
  EXPECT_EQ(rows[1].time_us, exact_timing(12.50)) << "the mean, and not P50";
  EXPECT_EQ(rows[1].count, 256u);
  EXPECT_EQ(rows[4].dtype, "float");
  EXPECT_EQ(rows[4].time_us.median, 13.50);
  EXPECT_EQ(rows[4].wrong, 0u);
  EXPECT_EQ(rows[4].ranks, 4);
  EXPECT_TRUE(notes_say(files[0], "device memory: MPI-CUDA"));
  EXPECT_TRUE(notes_say(files[0], "means over calls and ranks"));
  const CollectiveRow gathered = row_of(files[1], 4096);
  EXPECT_EQ(gathered.time_us.median, 8.50);
  EXPECT_EQ(gathered.count, 1024u);
  EXPECT_EQ(gathered.dtype, "int8");
  EXPECT_EQ(gathered.op, "none");
  EXPECT_FALSE(notes_say(files[1], "device memory"));
  EXPECT_TRUE(notes_say(files[1], "size of a block"));
  EXPECT_TRUE(notes_say(files[1], "no such rows: MPI Latency Test v7.4 (line 2)"));
}

TEST(OsuLog, AFailedValidationIsWrongAndNoted) {
  const auto files = parse_log(with(small_log("osu.txt"), "Pass", "Fail"), "x.log");
  EXPECT_EQ(rows_of(files[0])[0].wrong, 1u) << "at least one element";
  EXPECT_EQ(rows_of(files[0])[4].wrong, 0u);
  EXPECT_TRUE(notes_say(files[0], "Wrong results: the validation of line 12 failed"));
}

TEST(OsuLog, OfNccl) {
  const auto files = read_small_log("osu_nccl.txt");
  EXPECT_EQ(rows_of(files[0])[0].algorithm, "nccl:ring");
  EXPECT_EQ(row_of(files[0], 1073741824).time_us.median, 8955.18);
  EXPECT_TRUE(notes_say(files[0], "device memory: NCCL-CUDA"));
  const auto rccl =
      parse_log(with(small_log("osu_nccl.txt"), "NCCL-CUDA", "RCCL-ROCM"), "x.log", {.ranks = 4});
  EXPECT_EQ(rows_of(rccl[0])[0].algorithm, "rccl:ring");
}

TEST(OsuLog, SettingsOfACommandAreOfItsRun) {
  const std::string text = with(small_log("osu_nccl.txt"), "export NCCL_ALGO=Ring\n", "");
  const auto files = parse_log(
      "mpirun -n 4 -x NCCL_ALGO=Tree osu_xccl_allreduce\n" + text + "mpirun -n 4 osu_xccl_allreduce\n" + text,
      "x.log");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(rows_of(files[0])[0].algorithm, "nccl:tree");
  EXPECT_EQ(rows_of(files[1])[0].algorithm, "nccl");
}

TEST(OsuLog, TitlesOfAllKinds) {
  const auto collective_of = [](const std::string& title) {
    return parse_log("# OSU " + title + "\n# Size       Avg Latency(us)\n4   1.00\n", "x.log",
                     {.ranks = 4})[0]
        .collective;
  };
  EXPECT_EQ(collective_of("MPI Reduce_scatter Latency Test v5.9"), "reduce-scatter");
  EXPECT_EQ(collective_of("MPI-CUDA MANAGED Allreduce Latency Test v5.3"), "allreduce");
  EXPECT_EQ(collective_of("MPI-ROCM All-to-All Personalized Exchange Latency Test v7.4"), "alltoall");
  EXPECT_EQ(collective_of("MPI Allgather Latency Test"), "allgather");
  for (const char* other : {"MPI Bandwidth Test v7.4", "MPI Non-blocking Allreduce Latency Test v5.8",
                            "MPI Allgatherv Latency Test v7.4", "MPI Allreduce Persistent Latency Test v7.4",
                            "MPI All-to-Allv Personalized Exchange Latency Test v7.4"})
    EXPECT_REFUSED(fmt::format("# OSU {}\n# Size      Avg Latency(us)\n1   2.00\n", other),
                   "(line 1); give a log of one of these");
}

TEST(OsuLog, RanksOfCommandLines) {
  const auto ranks_of = [](const std::string& command) {
    return rows_of(parse_log(
        command + "\n\n" + with(small_log("osu_nccl.txt"), "export NCCL_ALGO=Ring\n", ""), "x.log")[0])[0]
        .ranks;
  };
  EXPECT_EQ(ranks_of("mpirun -np 6 ./osu_xccl_allreduce -d cuda"), 6);
  EXPECT_EQ(ranks_of("srun --ntasks=12 osu_xccl_allreduce"), 12);
  EXPECT_EQ(ranks_of("$ mpiexec -n 3 osu_xccl_allreduce -n 7"), 3);
  EXPECT_REFUSED("mpirun osu_allreduce -n 7\n" + small_log("osu_nccl.txt"), "--ranks");
}

TEST(OsuLog, DamagedRowsAreNoted) {
  const auto files = parse_log(with(small_log("osu_nccl.txt"), "                55.18", " 55.18 gpu0"),
                               "x.log", {.ranks = 4});
  EXPECT_EQ(rows_of(files[0]).size(), 1u);
  EXPECT_TRUE(notes_say(files[0], "1 row torn or contradictory and left out: line 8"));
}

TEST(OsuLog, TablesPrintedIntoEachOtherAreRefused) {
  const std::string text = small_log("osu_nccl.txt");
  EXPECT_REFUSED(text + "1048576                55.18\n", "line 10: the sizes of the table begin anew",
                 {.ranks = 2});
  EXPECT_REFUSED(with(text, "# Size", "# Size       Avg Latency(us)\n# Size"),
                 "line 8: two tables are printed into each other", {.ranks = 2});
}

TEST(OsuLog, AnAbortedRunIsRefused) {
  EXPECT_REFUSED(small_log("osu_nccl.txt") + "mpirun noticed that process rank 1 with PID 0 exited\n",
                 "line 10: the run was aborted: 'mpirun noticed", {.ranks = 2});
}

}  // namespace
}  // namespace polyring
