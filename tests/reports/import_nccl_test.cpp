// nccl-tests' and rccl-tests' text.
#include <fmt/format.h>

#include "base/files.hpp"
#include "reports/wrong_results.hpp"
#include "tests/reports/logs.hpp"

namespace polyring {
namespace {

TEST(NcclLog, OldOfOneHost) {
  POLYRING_LOG(path, "o01");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 48u);
  const CollectiveRow row = row_of(files[0], 33554432, true);
  EXPECT_EQ(row.ranks, 8);
  EXPECT_EQ(row.nodes, 1);
  EXPECT_EQ(row.ranks_per_node, 8);
  EXPECT_EQ(row.time_us, exact_timing(358.5));
  EXPECT_NEAR(row.busbw_GBps, 163.80, 0.02);
  EXPECT_EQ(row.count, 8388608u);
  EXPECT_EQ(row.dtype, "float");
  EXPECT_EQ(row.op, "sum");
  EXPECT_EQ(row.wrong, std::nullopt) << "1e-07 is an error, and no count";
  EXPECT_EQ(row.source, Source::imported);
  EXPECT_EQ(row.timing, TimingMethod::back_to_back);
  EXPECT_EQ(row.algorithm, "nccl");
  EXPECT_EQ(row.implementation, "nccl-tests");
  EXPECT_FALSE(files[0].partial);
}

TEST(NcclLog, OldOf16Hosts) {
  POLYRING_LOG(path, "o02");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 48u);
  const CollectiveRow row = row_of(files[0], 131072);
  EXPECT_EQ(row.ranks, 128);
  EXPECT_EQ(row.nodes, 16);
  EXPECT_EQ(row.time_us.median, 203.2);
  EXPECT_EQ(files[0].placement.size(), 128u);
}

TEST(NcclLog, FiveCollectivesInOneFile) {
  POLYRING_LOG(path, "o03");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].collective, "allgather");
  EXPECT_EQ(files[1].collective, "allreduce");
  EXPECT_EQ(files[2].collective, "reduce-scatter");
  EXPECT_EQ(rows_of(files[0]).size(), 56u) << "without those of 0 bytes";
  EXPECT_EQ(rows_of(files[1]).size(), 62u);
  EXPECT_EQ(rows_of(files[2]).size(), 56u);
  EXPECT_TRUE(notes_say(files[0], "4 FAILED"));
  EXPECT_FALSE(notes_say(files[1], "Wrong results"));
  EXPECT_TRUE(notes_say(files[0], "(n - 1) / n"));
  EXPECT_TRUE(notes_say(files[0], "broadcast"));
  const CollectiveRow gathered = row_of(files[0], 33554400);
  EXPECT_EQ(gathered.ranks, 12);
  EXPECT_EQ(gathered.time_us.median, 465.7);
  EXPECT_NEAR(gathered.busbw_GBps, 66.04, 0.01);
  EXPECT_EQ(gathered.count, 699050u);
  EXPECT_EQ(row_of(files[1], 8589934592).time_us.median, 127453);
  EXPECT_EQ(row_of(files[2], 33554400).time_us.median, 554.9);
}

TEST(NcclLog, InfoLinesTearARow) {
  POLYRING_LOG(path, "o04");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(rows_of(files[0]).size(), 62u);
  const CollectiveRow torn = row_of(files[0], 2097152);
  EXPECT_EQ(torn.time_us.median, 87.18);
  EXPECT_EQ(row_of(files[0], 2097152, true).time_us.median, 85.11);
  EXPECT_EQ(torn.ranks, 8);
  EXPECT_EQ(torn.nodes, 2);
  EXPECT_EQ(torn.ranks_per_node, 4);
  EXPECT_EQ(torn.wrong, 0u);
  EXPECT_EQ(files[0].versions.at("NCCL"), "2.22.3+cuda12.6");
}

TEST(NcclLog, OfVersion2_17_8) {
  POLYRING_LOG(path, "o05");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 4u);
  const std::vector<std::string> collectives{"allreduce", "allgather", "reduce-scatter", "alltoall"};
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].collective, collectives[i]);
    EXPECT_EQ(rows_of(files[i]).size(), 20u);
    EXPECT_EQ(rows_of(files[i])[0].implementation, "nccl-tests 2.17.8");
    EXPECT_TRUE(notes_say(files[i], "sendrecv"));
  }
  EXPECT_EQ(row_of(files[0], 17179869184).dtype, "double");
  EXPECT_NEAR(row_of(files[0], 17179869184).busbw_GBps, 482.27, 0.01);
  EXPECT_EQ(row_of(files[3], 33554432, true).wrong, std::nullopt);
  EXPECT_EQ(row_of(files[3], 33554432, false).wrong, 0u);
  EXPECT_EQ(row_of(files[1], 33554432).count, 524288u);
  EXPECT_EQ(row_of(files[1], 33554432).op, "none");
}

TEST(NcclLog, WithoutDevicesItsRanksFollowFromBusbw) {
  POLYRING_LOG(path, "o06");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 64u);
  EXPECT_EQ(rows_of(files[0])[0].ranks, 8);
  EXPECT_TRUE(notes_say(files[0], "busbw / algbw does: 8"));
  EXPECT_EQ(row_of(files[0], 17179869184).time_us.median, 62239);
}

TEST(NcclLog, NewVersionsWithTimeStamps) {
  const auto files = read_small_log("nccl_new.txt");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].collective, "allreduce");
  EXPECT_EQ(files[1].collective, "alltoall");
  ASSERT_EQ(rows_of(files[0]).size(), 6u);
  const CollectiveRow row = row_of(files[0], 65536);
  EXPECT_EQ(row.ranks, 4);
  EXPECT_EQ(row.nodes, 2);
  EXPECT_EQ(row.ranks_per_node, 2);
  EXPECT_EQ(row.count, 16384u);
  EXPECT_EQ(row.time_us, exact_timing(82.00));
  EXPECT_NEAR(row.algbw_GBps, 0.80, 0.005);
  EXPECT_NEAR(row.busbw_GBps, 1.20, 0.005);
  EXPECT_EQ(row.wrong, 0u);
  EXPECT_EQ(row.implementation, "nccl-tests 2.17.8");
  EXPECT_EQ(row.algorithm, "nccl");
  EXPECT_EQ(row_of(files[0], 65536, true).time_us.median, 81.00);
  const CollectiveRow in_place = row_of(files[1], 4194304, true);
  EXPECT_EQ(in_place.wrong, std::nullopt) << "N/A";
  EXPECT_EQ(in_place.op, "none");
  EXPECT_EQ(in_place.count, 262144u) << "of a block";
  EXPECT_EQ(in_place.time_us.median, 217.75);
  EXPECT_EQ(files[0].versions.at("NCCL"), "2.29.2");
  EXPECT_FALSE(files[0].partial);
  EXPECT_TRUE(notes_say(files[0], "means over calls"));
}

TEST(NcclLog, OldVersionsOf11And12Columns) {
  const auto files = read_small_log("nccl_old.txt");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].collective, "allgather");
  EXPECT_EQ(files[1].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 6u);
  const CollectiveRow gathered = row_of(files[0], 1048576);
  EXPECT_EQ(gathered.time_us.median, 60.50);
  EXPECT_NEAR(gathered.algbw_GBps, 17.33, 0.005) << "and not 13.00, of three blocks of four";
  EXPECT_NEAR(gathered.busbw_GBps, 13.00, 0.005);
  EXPECT_EQ(gathered.wrong, std::nullopt) << "0e+00 is an error, and no count";
  EXPECT_EQ(gathered.algorithm, "nccl:tree");
  EXPECT_TRUE(notes_say(files[0], "(n - 1) / n"));
  EXPECT_TRUE(notes_say(files[0], "largest error"));
  EXPECT_EQ(row_of(files[1], 1048576, true).time_us.median, 78.25);
  EXPECT_EQ(row_of(files[1], 1048576).algorithm, "nccl") << "the command before was another's";
  EXPECT_FALSE(notes_say(files[1], "(n - 1) / n"));
  EXPECT_EQ(files[1].command, "Running: ./build/all_reduce_perf -b 1K -e 1M -f 32 -g 4");
}

TEST(NcclLog, PrefixesMessagesAndATornRow) {
  const auto files = read_small_log("nccl_tagged.txt");
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(rows_of(files[0]).size(), 6u);
  const CollectiveRow torn = row_of(files[0], 32768);
  EXPECT_EQ(torn.time_us.median, 24.50);
  EXPECT_EQ(torn.algorithm, "nccl:ring");
  EXPECT_EQ(row_of(files[0], 32768, true).time_us.median, 23.50);
  EXPECT_EQ(files[0].versions.at("NCCL"), "2.22.3+cuda12.6");
  EXPECT_EQ(files[0].environment.at("NCCL_ALGO"), "Ring");
  EXPECT_FALSE(notes_say(files[0], "torn"));
  // The row's last word and the name of a host, which is known from other lines, have grown together.
  std::string digits = small_log("nccl_tagged.txt");
  while (digits.find("node0:1000:") != std::string::npos)
    digits = with(digits, "node0:1000:", "80node:1000:");
  digits = with(with(digits, "-180node", "-1    24.5080node"), "    24.50 ", "");
  EXPECT_EQ(row_of(parse_log(digits, "x.log")[0], 32768).time_us.median, 24.50);
}

TEST(NcclLog, CyclesAreSamplesAndIterationsAColumn) {
  const auto files = read_small_log("nccl_cycles.txt");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "reduce-scatter");
  ASSERT_EQ(rows_of(files[0]).size(), 4u);
  const CollectiveRow row = row_of(files[0], 65536, true);
  EXPECT_EQ(row.time_us, timing({28.00, 29.00, 30.00}));
  EXPECT_EQ(row.count, 4096u) << "of a block";
  EXPECT_EQ(row.timing, TimingMethod::osu) << "a barrier between calls";
  EXPECT_TRUE(notes_say(files[0], "3 cycles (-N)"));
  EXPECT_FALSE(notes_say(files[0], "(-z 1)")) << "the times are without it";
}

TEST(NcclLog, ACycleOfOneSizeIsOneWhereThereIsOneSize) {
  const std::string text = with(small_log("nccl_cycles.txt"), "minBytes 4096", "minBytes 65536");
  std::string one_size;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    if (text.substr(at, 12) != "        4096") one_size += text.substr(at, end - at);
    at = end;
  }
  EXPECT_EQ(row_of(parse_log(one_size, "x.log")[0], 65536).time_us, timing({30.00, 31.00, 32.00}));
  EXPECT_REFUSED(with(one_size, "minBytes 65536", "minBytes 4096"), "into each other");
}

TEST(NcclLog, OfRccl) {
  const auto files = read_small_log("rccl.txt");
  ASSERT_EQ(files.size(), 1u);
  ASSERT_EQ(rows_of(files[0]).size(), 2u);
  const CollectiveRow row = row_of(files[0], 65536, true);
  EXPECT_EQ(row.time_us, timing({22.50, 23.50})) << "those of its table, and not of events";
  EXPECT_EQ(row.algorithm, "rccl:ring");
  EXPECT_EQ(row_of(files[0], 1024, true).algorithm, "rccl:tree");
  EXPECT_EQ(row.dtype, "bfloat16");
  EXPECT_EQ(row.count, 32768u);
  EXPECT_EQ(row.implementation, "rccl-tests 2.18.3-develop:448c4c7");
  EXPECT_EQ(files[0].versions.at("RCCL"), "2.30.4-develop:99666db");
  EXPECT_EQ(files[0].versions.at("ROCm"), "7.15.0.0-9");
  const auto before_2026 = parse_log(
      with(with(small_log("rccl.txt"),
                "# rccl-tests version 2.18.3-develop:448c4c7 rccl-headers=23004 rccl-library=23004\n", ""),
           "# Using devices", "rccl-tests: Version develop:448c4c7\n# Using devices"),
      "x.log");
  EXPECT_EQ(row_of(before_2026[0], 65536, true).implementation, "rccl-tests develop:448c4c7");
}

TEST(NcclLog, WrongElementsAreAsGiven) {
  const std::string text = small_log("nccl_new.txt");
  const auto files =
      parse_log(with(text, "  0.07       0    19.50", "  0.07  1.04858e+06    19.50"), "x.log");
  EXPECT_EQ(row_of(files[0], 1024).wrong, 1048580u);
  EXPECT_EQ(row_of(files[0], 1024, true).wrong, 0u);
  EXPECT_FALSE(notes_say(files[0], "Wrong"));
  EXPECT_EQ(wrong_results(files[0]).rows, 1u);
  const auto failed = parse_log(with(text, "values : 0 OK", "values : 4 FAILED"), "x.log");
  EXPECT_TRUE(notes_say(failed[0], "Wrong results: 'Out of bounds values : 4 FAILED' (line 17)"));
  EXPECT_EQ(wrong_results(failed[0]).notes.size(), 1u);
  EXPECT_TRUE(notes_say(parse_log(with(text, "validation: 1", "validation: 0"), "x.log")[0], "not checked"));
}

TEST(NcclLog, WhatIsNotComparableIsNoted) {
  const std::string text = small_log("nccl_new.txt");
  const auto graphs = parse_log(with(text, "graph: 0", "graph: 4"), "x.log")[0];
  EXPECT_TRUE(notes_say(graphs, "CUDA graph"));
  EXPECT_EQ(rows_of(graphs)[0].timing, TimingMethod::graph);
  const auto blocking = [&](const std::string& how) {
    return parse_log(with(text, "#\n# Using", "# Blocking Enabled: " + how + " \n#\n# Using"), "x.log")[0];
  };
  const auto with_barriers = blocking("wait for completion and barrier after each collective");
  EXPECT_EQ(rows_of(with_barriers)[0].timing, TimingMethod::osu);
  EXPECT_TRUE(notes_say(with_barriers, "(-z 1)"));
  const auto waited = blocking("wait after each inner iteration (-m), no barrier");
  EXPECT_EQ(rows_of(waited)[0].timing, TimingMethod::blocking);
  EXPECT_FALSE(notes_say(waited, "(-z 1)"));
  const auto outer = blocking("wait and barrier after each outer iteration (-n); reported time excludes it");
  EXPECT_EQ(rows_of(outer)[0].timing, TimingMethod::osu);
  EXPECT_FALSE(notes_say(outer, "(-z 1)"));
  EXPECT_REFUSED(with(text, " time   algbw", " cputime   algbw"), "line 12: its times are the CPU's");
  EXPECT_TRUE(notes_say(
      parse_log(with(text, "# Collective test concluded", "# error: no peers\n# Collective test concluded"),
                "x.log")[0],
      "NCCL said: no peers"));
}

TEST(NcclLog, GroupsSideBySideAreOne) {
  std::string text = small_log("nccl_new.txt");
  for (const char* rank : {"# Rank", "#  Rank  1 Group  0", "#  Rank  3 Group  0"})
    if (text.find(rank) != std::string::npos) text = with(text, rank, with(rank, "Group  0", "Group  9"));
  const auto files = parse_log(text, "x.log");
  EXPECT_EQ(rows_of(files[0])[0].ranks, 2);
  EXPECT_TRUE(notes_say(files[0], "groups of ranks"));
  EXPECT_EQ(rows_of(files[1])[0].ranks, 4);
}

TEST(NcclLog, ItsAlgorithmIsWhatNcclWasToldToTake) {
  const std::string text = small_log("nccl_new.txt");
  const auto algorithms = [&](const std::string& log) {
    std::vector<std::string> found;
    for (const ResultFile& file : parse_log(log, "x.log")) found.push_back(rows_of(file)[0].algorithm);
    return found;
  };
  const std::vector<std::string> both{"nccl:ring", "nccl:ring"};
  const std::vector<std::string> first{"nccl:ring", "nccl"};
  EXPECT_EQ(algorithms("export NCCL_ALGO=Ring\n" + text), both);
  EXPECT_EQ(algorithms("+ export 'NCCL_ALGO=Ring'\n" + text), both);
  EXPECT_EQ(algorithms("mpirun -x NCCL_ALGO=Ring -np 4 ./all_reduce_perf\n" + text), first);
  EXPECT_EQ(algorithms("srun --export=ALL,NCCL_ALGO=Ring,NCCL_DEBUG=INFO ./all_reduce_perf\n" + text), first);
  EXPECT_EQ(algorithms("mpiexec -genv NCCL_ALGO Ring ./all_reduce_perf\n" + text), first);
  EXPECT_EQ(
      algorithms(with(text, "# Using", "a:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n# Using")),
      first);
  EXPECT_EQ(algorithms("mpirun -x NCCL_ALGO=Ring,Tree -np 4 ./all_reduce_perf\n" + text)[0],
            "nccl:ring,tree");
  EXPECT_EQ(algorithms("mpirun -x NCCL_ALGO=^NVLS -np 4 ./all_reduce_perf\n" + text)[0], "nccl:^nvls");
}

TEST(NcclLog, OnlyWhatMayBeRecordedIsKept) {
  const auto files = parse_log(
      "export NCCL_DEBUG=INFO\nexport AWS_SECRET_ACCESS_KEY=1\n" + small_log("nccl_new.txt"), "x.log");
  EXPECT_EQ(files[0].environment, (std::map<std::string, std::string>{{"NCCL_DEBUG", "INFO"}}));
}

TEST(NcclLog, LaunchersPrefixesAreNoText) {
  const std::string text = small_log("nccl_new.txt");
  const auto plain = parse_log(text, "x.log");
  for (const char* prefix :
       {"[1,0]<stdout>:", "[1,10]<stdout>: ", "[prterun-a-1@1,0]<stdout>: ",
        "Mon Jan 01 00:00:00 2024[1,0]<stdout>:", "0: ", " 0: ", "[0] ", "[default0]:"}) {
    std::string all;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      all += prefix + text.substr(at, end - at);
      at = end;
    }
    const auto files = parse_log(all, "x.log");
    ASSERT_EQ(files.size(), 2u) << prefix;
    EXPECT_EQ(files[0].rows, plain[0].rows) << prefix;
    EXPECT_EQ(files[1].rows, plain[1].rows) << prefix;
  }
}

TEST(NcclLog, ATornRowIsNotedUnlessItsRestComes) {
  const std::string text = small_log("nccl_new.txt");
  const std::size_t begin = text.find("     4194304  ");
  const std::string row = text.substr(begin, text.find('\n', begin) - begin);
  const auto part = with(text, row, row.substr(0, 52));
  const auto files = parse_log(part, "x.log");
  EXPECT_EQ(rows_of(files[0]).size(), 4u);
  EXPECT_TRUE(notes_say(files[0], "1 row torn or contradictory and left out: line 16"))
      << files[0].notes.back();
  EXPECT_FALSE(notes_say(files[1], "torn"));
  const auto joined = parse_log(with(text, row, row.substr(0, 52) + "\n\n" + row.substr(52)), "x.log");
  EXPECT_EQ(joined[0].rows, parse_log(text, "x.log")[0].rows);
  // A number that is torn into two gives a row of so many words, with a time that its bandwidth contradicts.
  const auto split_number =
      parse_log(with(text, "143.50   29.23   43.84       0", "14 3.50   29.23   43.84"), "x.log");
  EXPECT_EQ(rows_of(split_number[0]).size(), 4u);
}

TEST(NcclLog, TablesPrintedIntoEachOtherAreRefused) {
  const std::string text = small_log("nccl_new.txt");
  const std::string run = text.substr(0, text.find("\n\n# nccl-tests") + 1);
  const std::size_t rows = run.find("        1024");
  // All begin before any has measured: the second header comes before a row.
  EXPECT_REFUSED(run.substr(0, rows) + run.substr(0, rows) + run.substr(rows) + run.substr(rows),
                 "line 14: two tables are printed into each other");
  // Without devices, and with one table behind the other.
  EXPECT_REFUSED(run + run.substr(rows), "two tables are printed into each other");
  EXPECT_REFUSED(run + run.substr(rows, run.find('\n', rows) + 1 - rows), "line 22: two tables are printed");
  EXPECT_REFUSED(with(text, "#  Rank  1", "#  Rank  0"), "line 7: two tables are printed into each other");
  const std::string row = run.substr(rows, run.find('\n', rows) + 1 - rows);
  EXPECT_REFUSED(with(run, "     4194304  ", row + "     4194304  "),
                 "line 17: two tables are printed into each other");
}

TEST(NcclLog, AnAbortedRunIsRefused) {
  const std::string text = small_log("nccl_new.txt");
  for (const char* failure : {"node0: Test NCCL failure common.cu:1020 'unhandled system error / '",
                              "[node0:7] *** Process received signal: Segmentation fault (11)",
                              "slurmstepd: error: *** STEP 1.0 ON a CANCELLED AT 2026-01-01 ***"}) {
    const std::string aborted = text.substr(0, text.find("     4194304")) + failure + "\n";
    EXPECT_REFUSED(aborted, fmt::format("line 16: the run was aborted: '{}'; run it again", failure));
    EXPECT_REFUSED(aborted + text, "line 16: the run was aborted");
  }
  const std::string drained = "srun: error: node a was drained\n";
  EXPECT_EQ(parse_log(drained + text.substr(0, text.find("     4194304")), "x.log")[0].partial, "4 rows")
      << "before a run";
  EXPECT_EQ(parse_log(text + drained, "x.log").size(), 2u) << "behind it";
}

TEST(NcclLog, WithoutRanksItAsks) {
  std::string text = small_log("nccl_new.txt");
  while (text.find("#  Rank") != std::string::npos)
    text.erase(text.find("#  Rank"), text.find('\n', text.find("#  Rank")) + 1 - text.find("#  Rank"));
  const auto by_busbw = parse_log(text, "x.log");
  EXPECT_EQ(rows_of(by_busbw[0])[0].ranks, 4);
  EXPECT_TRUE(notes_say(by_busbw[0], "busbw / algbw does: 4"));
  EXPECT_TRUE(notes_say(by_busbw[0], "does not say on which hosts"));
  const std::string small = text.substr(0, text.find("       65536")) +
                            "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.1\n";
  EXPECT_REFUSED(small, "line 1: the log does not say how many ranks its allreduce had; say so with --ranks");
  EXPECT_EQ(rows_of(parse_log(small, "x.log", {.ranks = 6})[0])[0].ranks, 6);
  EXPECT_REFUSED(small_log("nccl_new.txt"), "line 1: its allreduce had 4 ranks and not 5; leave out --ranks",
                 {.ranks = 5});
}

TEST(NcclLog, WithoutItsNameACollectiveFollowsFromTheTable) {
  const auto unnamed = [](const std::string& text, std::size_t begin, std::size_t end) {
    std::string run = text.substr(begin, end - begin);
    run.erase(0, run.find("# nThread"));
    if (const std::size_t concluded = run.find("# Collective test concluded"); concluded != std::string::npos)
      run.resize(concluded);
    return run;
  };
  const std::string text = small_log("nccl_new.txt");
  const std::size_t second = text.rfind("# nccl-tests version");
  const auto reduced = parse_log(unnamed(text, 0, second), "x.log");
  EXPECT_EQ(reduced[0].collective, "allreduce");
  EXPECT_TRUE(notes_say(reduced[0], "does not name its collective; its table is of an allreduce"));
  EXPECT_REFUSED(unnamed(text, second, text.size()), "only a table that does not say of what (line 1)");
  EXPECT_EQ(parse_log(unnamed(small_log("nccl_cycles.txt"), 0, std::string::npos), "x.log")[0].collective,
            "reduce-scatter");
}

TEST(NcclLog, SendAndReceiveOfTwoIsNoAllreduce) {
  const std::string begin =
      "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 "
      "validation: 1\n"
      "#   Rank  0 Pid 1 on a device  0 [0x06] V100\n#   Rank  1 Pid 1 on a device  1 [0x07] V100\n"
      "# out-of-place in-place\n# size count type redop time algbw busbw error time algbw busbw error\n"
      "1048576 262144 float sum 70.50 14.87 14.87 0e+00 69.50 15.09 15.09 ";
  const std::string end = "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 15\n";
  EXPECT_EQ(parse_log(begin + "0e+00" + end, "x.log")[0].collective, "allreduce");
  EXPECT_REFUSED(begin + "N/A" + end, "only a table that does not say of what (line 1)");
}

TEST(NcclLog, WithoutACollectiveOfOursItSaysWhatIsThere) {
  std::string text =
      with(small_log("nccl_new.txt"), "all_reduce_perf\n# nThread", "broadcast_perf\n# nThread");
  EXPECT_TRUE(notes_say(parse_log(text, "x.log")[0], "no such rows: broadcast (line 1)"));
  text = with(text, "alltoall_perf\n# nThread", "alltoallv_perf\n# nThread");
  EXPECT_REFUSED(text,
                 "'x.log' has no allreduce, reduce-scatter, allgather or alltoall in it, only broadcast "
                 "(line 1), alltoallv (line 23); give a log of one of these");
}

}  // namespace
}  // namespace polyring
