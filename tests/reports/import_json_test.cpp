// nccl-tests' JSON, and what rccl-tests writes to files.
#include <fmt/format.h>

#include "base/files.hpp"
#include "tests/reports/logs.hpp"

namespace polyring {
namespace {

TEST(NcclJson, RealOfTwoGpusWithTimesOfCalls) {
  POLYRING_LOG(path, "o09");
  const auto files = import_log(path);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].collective, "allreduce");
  ASSERT_EQ(rows_of(files[0]).size(), 2u);
  const CollectiveRow row = row_of(files[0], 134217728);
  EXPECT_EQ(row.ranks, 2) << "one device is listed, and two GPUs a process";
  EXPECT_EQ(row.nodes, 1);
  ASSERT_EQ(row.time_us.samples.size(), 50u);
  EXPECT_EQ(row.time_us.samples.front(), 23677.312851);
  EXPECT_EQ(row.time_us.samples.back(), 23474.176407);
  EXPECT_EQ(row.time_us.min, 23194.591522);
  EXPECT_NEAR(row.time_us.median, (23449.216843 + 23453.439713) / 2, 5);
  EXPECT_EQ(row.wrong, 0u);
  EXPECT_EQ(row.dtype, "half");
  EXPECT_EQ(row.algorithm, "nccl");
  EXPECT_EQ(row.implementation, "nccl-tests");
  EXPECT_EQ(row_of(files[0], 134217728, true).time_us.samples.front(), 23332.031250);
  EXPECT_EQ(files[0].versions.at("NCCL"), "2.29.3");
  EXPECT_EQ(files[0].environment,
            (std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"NCCL_DEBUG", "INFO"}}));
  EXPECT_FALSE(files[0].partial);
  EXPECT_TRUE(notes_say(files[0], "single calls"));
}

TEST(NcclJson, SamplesAreTheCallsThatCount) {
  const auto files = read_small_log("nccl.json");
  ASSERT_EQ(files.size(), 1u);
  const CollectiveRow row = row_of(files[0], 1048576);
  EXPECT_EQ(row.time_us, timing({52.5, 50.5, 51.5})) << "the first is skipped (-K)";
  EXPECT_EQ(row_of(files[0], 1048576, true).time_us, timing({49.5, 48.5, 50.0}));
  EXPECT_EQ(row.ranks, 4) << "two processes of two GPUs";
  EXPECT_EQ(row.nodes, 2);
  EXPECT_EQ(row.ranks_per_node, 2);
  EXPECT_EQ(row.algorithm, "nccl:ring,tree");
  EXPECT_EQ(files[0].environment,
            (std::map<std::string, std::string>{{"NCCL_ALGO", "Ring,Tree"}, {"NCCL_DEBUG", "INFO"}}));
  EXPECT_EQ(files[0].command, "/opt/nccl_perf/build/all_reduce_perf -b 1M -e 1M -I 1");
  EXPECT_EQ(files[0].placement[3], (RankHost{3, "node1"}));
}

TEST(NcclJson, Versions1To3) {
  const std::string text = small_log("nccl.json");
  const std::size_t first = text.find("\"out_of_place_per_iter\"");
  std::string old = text.substr(0, first) + text.substr(text.find("\"in_place\":"));
  old = with(old,
             old.substr(old.find("\"in_place_per_iter\""),
                        old.find("\"actual_iterations\"") - old.find("\"in_place_per_iter\"")),
             "");
  old = with(old, "\"average_bus_bandwidth\":{\"bandwidth\"", "\"average_bus_bandwidith\":{\"bandwidith\"");
  for (const char* version : {"1", "2", "3"}) {
    const auto files =
        parse_log(with(old, "\"version\":3", fmt::format("\"version\":{}", version)), "x.json");
    EXPECT_EQ(row_of(files[0], 1048576).time_us, exact_timing(52.0)) << version;
    EXPECT_TRUE(notes_say(files[0], "means over calls"));
    EXPECT_FALSE(files[0].partial);
  }
  EXPECT_REFUSED(with(text, "\"version\":3", "\"version\":4"),
                 "'x.log' is JSON of nccl-tests of another version than 1 to 3; give the text");
}

TEST(NcclJson, OkayIsTextOrABool) {
  const std::string text = small_log("nccl.json");
  const auto wrong = [&](const std::string& okay) {
    return notes_say(parse_log(with(text, "\"okay\":\"true\"", "\"okay\":" + okay), "x.json")[0],
                     "Wrong results");
  };
  EXPECT_TRUE(wrong("false"));
  EXPECT_TRUE(wrong("\"false\""));
  EXPECT_FALSE(wrong("true"));
  EXPECT_FALSE(wrong("\"unchecked\""));
}

TEST(NcclJson, WhatIsNotComparableIsNoted) {
  const std::string text = small_log("nccl.json");
  const auto note = [&](const std::string& from, const std::string& to, const std::string& what) {
    return notes_say(parse_log(with(text, from, to), "x.json")[0], what);
  };
  EXPECT_TRUE(note("\"validation\":1", "\"validation\":0", "not checked"));
  EXPECT_TRUE(note("\"graph\":0", "\"graph\":1", "CUDA graph"));
  EXPECT_TRUE(note("\"errors\":[\"\"]", "\"errors\":[\"no peers\"]", "NCCL said: no peers"));
  EXPECT_TRUE(note("\"group\":0,\"pid\":2", "\"group\":1,\"pid\":2", "groups of ranks"));
  const std::string waited =
      with(text, "\"blocking_collectives\":\"false\"", "\"blocking_collectives\":\"true\"");
  EXPECT_EQ(rows_of(parse_log(waited, "x.json")[0])[0].timing, TimingMethod::osu);
  EXPECT_TRUE(notes_say(parse_log(waited, "x.json")[0], "(-z 1)"));
  EXPECT_FALSE(notes_say(parse_log(with(waited, "\"-I\",\"1\"", "\"-z\",\"3\""), "x.json")[0], "(-z 1)"));
  EXPECT_EQ(rows_of(parse_log(with(waited, "\"-I\",\"1\"", "\"-z\",\"2\""), "x.json")[0])[0].timing,
            TimingMethod::blocking);
  EXPECT_REFUSED(with(text, "\"time\":", "\"cpu_time\":"), "without -C");
  EXPECT_REFUSED(with(text, "\"time\":52.0", "\"time\":5.2"),
                 "result 1 lacks its size or time, or they contradict");
  EXPECT_EQ(
      rows_of(parse_log(with(text, "\"device_info\":\"NVIDIA", "\"device_info\":\"AMD"), "x.json")[0])[0]
          .algorithm,
      "rccl:ring,tree");
}

TEST(NcclJson, AnAbortedRunIsPartialOrRefused) {
  const std::string text = small_log("nccl.json");
  const auto files = parse_log(text.substr(0, text.find(",\"out_of_bounds\"")) + "}", "x.json");
  EXPECT_EQ(files[0].partial, "2 rows");
  EXPECT_TRUE(notes_say(files[0], "ends before the run does"));
  EXPECT_REFUSED(text.substr(0, text.size() / 2),
                 "line 1: this is not whole JSON: the run was aborted, or the file cut");
  EXPECT_REFUSED(text + text, "not whole JSON");
  EXPECT_REFUSED(with(text, "all_reduce_perf", "scatter_perf"), "only scatter (line 1)");
}

TEST(NcclJson, CyclesAreSamples) {
  const std::string text = small_log("nccl.json");
  const std::size_t begin = text.find("{\"size\"");
  const std::string result = text.substr(begin, text.find("],\"out_of_bounds\"") - begin);
  const auto files = parse_log(
      with(text, result, result + "," + with(result, "52.5,50.5,51.5]", "62.5,60.5,61.5]")), "x.json");
  EXPECT_EQ(row_of(files[0], 1048576).time_us, timing({52.5, 50.5, 51.5, 62.5, 60.5, 61.5}));
  EXPECT_TRUE(notes_say(files[0], "several cycles"));
}

TEST(RcclFile, Csv) {
  for (const char* nodes : {"nodes,", ""}) {  // which the header lacked for a year
    const auto files = parse_log(with(small_log("rccl.csv"), "nodes,", nodes), "x.csv");
    ASSERT_EQ(files.size(), 1u);
    EXPECT_EQ(files[0].collective, "allgather");
    ASSERT_EQ(rows_of(files[0]).size(), 4u);
    const CollectiveRow row = row_of(files[0], 65536, true);
    EXPECT_EQ(row.ranks, 4);
    EXPECT_EQ(row.nodes, 2);
    EXPECT_EQ(row.ranks_per_node, 2);
    EXPECT_EQ(row.time_us, exact_timing(23.5));
    EXPECT_EQ(row.count, 4096u);
    EXPECT_EQ(row.wrong, std::nullopt) << "N/A";
    EXPECT_EQ(row_of(files[0], 65536).wrong, 0u);
    EXPECT_EQ(row.algorithm, "rccl");
    EXPECT_EQ(row.op, "none");
  }
  EXPECT_REFUSED(with(small_log("rccl.csv"), "19.500000,", ""), "line 2: a row has 13 fields and not 14");
  EXPECT_REFUSED(with(small_log("rccl.csv"), "19.500000,", "1.9,"),
                 "line 2: a row lacks size, time, algBw or inPlace, or these contradict");
}

TEST(RcclFile, JsonAsAListAndByLines) {
  const auto list = read_small_log("rccl.json");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].collective, "reduce-scatter");
  const CollectiveRow row = row_of(list[0], 1024);
  EXPECT_EQ(row.ranks, 4) << "two processes of two GPUs";
  EXPECT_EQ(row.time_us, exact_timing(19.5));
  EXPECT_EQ(row.wrong, 0u);
  EXPECT_EQ(row.nodes, 1);
  EXPECT_TRUE(notes_say(list[0], "on which hosts")) << "it writes 1 node for any number";
  const auto lines = read_small_log("rccl_lines.json");
  EXPECT_EQ(lines[0].collective, "allreduce");
  EXPECT_EQ(row_of(lines[0], 65536, true).ranks, 4);
  EXPECT_EQ(row_of(lines[0], 65536, true).time_us.median, 23.5);
  EXPECT_EQ(row_of(lines[0], 65536, true).wrong, 0u);
  const std::string text = small_log("rccl_lines.json");
  EXPECT_REFUSED(text + text, "line 5: two runs are written into each other");
  EXPECT_REFUSED(text.substr(0, text.size() - 5), "line 4: this is not whole JSON");
  EXPECT_REFUSED(small_log("rccl.json") + small_log("rccl.json"), "not whole JSON");
}

TEST(RcclFile, CyclesAreSamples) {
  const std::string text = small_log("rccl.csv");
  const std::string rows = text.substr(text.find('\n') + 1);
  std::string again;
  for (std::size_t at = 0; at < rows.size(); at = rows.find('\n', at) + 1)
    again += "1" + rows.substr(at + 1, rows.find('\n', at) - at);
  const auto files = parse_log(text + with(again, "19.500000,0.052513", "19.600000,0.052245"), "x.csv");
  EXPECT_EQ(row_of(files[0], 1024).time_us, timing({19.5, 19.6}));
  EXPECT_TRUE(notes_say(files[0], "several cycles"));
}

}  // namespace
}  // namespace polyring
