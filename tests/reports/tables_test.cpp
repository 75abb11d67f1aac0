#include "reports/tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/csv.hpp"
#include "tests/folder.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Compares with a file of tests/golden/reports, or writes that file when POLYRING_UPDATE_GOLDEN is 1.
void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = tests_folder() / "golden/reports" / name;
  const char* update = std::getenv("POLYRING_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, read_file(path)) << "set POLYRING_UPDATE_GOLDEN=1 to accept the new text";
}

template <typename Row>
std::vector<Row> rows_of(const ResultFile& file) {
  return std::get<std::vector<Row>>(file.rows);
}

TEST(Table, AlignsColumnsUnderTheirHeaders) {
  Table table({{"", "name", "", Align::left},
               {"long group name", "t", "us", Align::right},
               {"", "x", "", Align::left}});
  table.caption = "Caption";
  table.add_gap();
  table.add_row({"größe", "1", "a"});
  table.add_gap();
  table.add_row({"b", "12345", ""});
  EXPECT_EQ(table.text(),
            "Caption\n\n"
            "        long group name\n"
            "name                   t  x\n"
            "                      us\n"
            "-----  -----------------  -\n"
            "größe                  1  a\n"
            "\n"
            "b                  12345\n");
}

TEST(Table, EscapesMarkdown) {
  Table table({{"g", "a|b", "us", Align::left}});
  table.add_row({"1|2\n3"});
  EXPECT_EQ(table.markdown(), "| g a\\|b (us) |\n| :--- |\n| 1\\|2 3 |\n");
}

TEST(Table, KeepsEachRowOnALineOfTheTerminal) {
  Table table({{"", "name", "", Align::left}, {"", "x", "", Align::left}});
  table.add_row({"a\nb\x1b[2J", "1"});
  EXPECT_EQ(table.text(),
            "name     x\n"
            "-------  -\n"
            "a␊b␛[2J  1\n");
}

TEST(Table, QuotesCsv) {
  Table table({{"", "a", "", Align::left}, {"g", "b", "us", Align::right}});
  table.add_row({"say \"x, y\"", "1"});
  table.add_row({"two\nlines", ""});
  EXPECT_EQ(table.csv(), "a,g_b_us\n\"say \"\"x, y\"\"\",1\n\"two\nlines\",\n");
}

TEST(Table, IsAListOfObjectsAsJson) {
  Table table({{"", "name", "", Align::left}, {"of bound", "in", "%"}, {"", "#wrong", ""}});
  table.add_row({"a \"b\"", "99.5", "0"});
  table.add_row({"12", "", "N/A"});
  EXPECT_EQ(table.json(),
            "[\n"
            "  {\"name\":\"a \\\"b\\\"\",\"of_bound_in_percent\":99.5,\"wrong\":0},\n"
            "  {\"name\":\"12\",\"of_bound_in_percent\":null,\"wrong\":\"N/A\"}\n"
            "]\n");
}

TEST(Table, LeavesColumnsOutThatAreEmptyOrForWhichALineHasNoRoom) {
  Table table({{"", "a", "", Align::left},
               {"", "b", "", Align::left, 2},
               {"", "c", "", Align::left},
               {"", "d", "", Align::left, 1}});
  table.add_row({"1", "22222", "", "4444"});
  EXPECT_EQ(table.text(), "a  b      d\n-  -----  ----\n1  22222  4444\n");
  EXPECT_EQ(table.markdown(), "| a | b | d |\n| :--- | :--- | :--- |\n| 1 | 22222 | 4444 |\n");
  EXPECT_EQ(table.text(13), "a  d\n-  ----\n1  4444\n") << "the higher number goes first";
  EXPECT_EQ(table.spared(table.widths(13)), "b") << "c is empty";
  EXPECT_EQ(table.text(1), "a\n-\n1\n");
  EXPECT_EQ(table.text(0), "a\n-\n1\n") << "what is never spared is there however short the lines are";
  EXPECT_EQ(table.spared(table.widths(1)), "b, d");
}

TEST(Table, WithoutRowsStillHasAHeader) {
  EXPECT_THAT(collective_table({}).text(), HasSubstr("busbw"));
  EXPECT_THAT(train_table({}).markdown(), HasSubstr("| algorithm |"));
  EXPECT_THAT(scale_table({}).csv(), HasSubstr("published_speedup"));
  EXPECT_TRUE(scale_table({}).empty());
}

TEST(GoldenTable, OfEveryKind) {
  for (const ResultFile& file : {examples::allreduce(), examples::train(), examples::scale()}) {
    const std::string kind(file.kind());
    expect_golden(kind + ".txt", table(file.rows).text());
    expect_golden(kind + ".md", table(file.rows).markdown());
    expect_golden(kind + ".csv", csv_head(file.rows) + csv_body(file.rows));
  }
  const auto rows = rows_of<CollectiveRow>(examples::allreduce());
  expect_golden("allreduce-below.txt", collective_table(rows, Placements::below).text(100));
  expect_golden("comparison.txt", comparison_table(rows, "mpi").text());
}

TEST(PlansTable, HasARowForEachSizeOfBucket) {
  const auto rows = rows_of<TrainRow>(examples::train());
  EXPECT_EQ(plans_table(rows).csv(),
            "algorithm,bucket,buckets,plan\n"
            "multi-ring,4KiB,12,\"multi-ring 2x2, 1 lane, star+halving\"\n"
            "multi-ring,25MiB,3,\"multi-ring 2x2, 1 lane, direct+ring, chunks of 1MiB\"\n");
  EXPECT_TRUE(plans_table(std::span(rows).last(1)).empty());
}

TEST(GpuProfileTable, ListsWhatAGpuDidAndIsEmptyWithoutOne) {
  const auto rows = rows_of<TrainRow>(examples::train());
  EXPECT_EQ(gpu_profile_table(rows).csv(),
            "algorithm,gpus,time_percent,time_ms,calls,activity\n"
            "multi-ring,4,75.0,169.1,2,computation\n"
            "multi-ring,4,25.0,56.40,15,kernels of allreduces\n"
            "multi-ring,4,,12.50,,idle\n");
  EXPECT_TRUE(gpu_profile_table(std::span(rows).last(1)).empty());
}

TEST(AllreduceTable, PutsInPlaceBesideOutOfPlaceAndAlgorithmsOfASizeTogether) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce());
  const std::string ordered = collective_table(rows).csv();
  // Sizes in any order give the same table, as long as the algorithms keep theirs.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.size_bytes > b.size_bytes; });
  EXPECT_EQ(collective_table(rows).csv(), ordered);
  EXPECT_EQ(std::count(ordered.begin(), ordered.end(), '\n'), 1 + 5 * 3);
}

TEST(AllreduceTable, ShowsOnceWhatDidTheSame) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce(1));  // multi-ring, ring and mpi, at 5 sizes
  for (CollectiveRow& row : rows)
    if (row.algorithm == "ring") row.same_as = "multi-ring";
  for (const Placements placements : {Placements::side_by_side, Placements::below}) {
    const std::string text = collective_table(rows, placements).text();
    EXPECT_THAT(text, AllOf(HasSubstr("multi-ring 2x2 direct+ring = ring "), Not(HasSubstr("\n ring"))));
    EXPECT_EQ(collective_table(rows, placements).size(), placements == Placements::below ? 20 : 10);
  }
  rows[2].same_as = rows[5].same_as = "multi-ring";
  EXPECT_THAT(collective_table(rows).text(), HasSubstr("multi-ring 2x2 direct+ring = 2 others "));
  std::erase_if(rows, [](const CollectiveRow& row) { return row.algorithm == "multi-ring"; });
  EXPECT_EQ(collective_table(rows).size(), 10)
      << "where its row is missing, as it was wrong, the others stand";
}

TEST(AllreduceTable, KeepsTheOrderOfTheAlgorithmsWhateverTheirPlans) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce());
  for (CollectiveRow& row : rows)
    if (row.algorithm == "multi-ring" && row.size_bytes == 8192) row.patterns = "star+halving";
  const std::string text = collective_table(rows).markdown();
  const std::string of_size = text.substr(text.find("| 8192 |"));
  EXPECT_LT(of_size.find("| multi-ring 2x2 star+halving |"), of_size.find("| ring |"));
}

TEST(AllreduceTable, SaysWhenNothingWasChecked) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce(1));
  rows.resize(1);
  rows[0].wrong.reset();
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr(",N/A,"));
  rows[0].wrong = 17;
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr(",17,"));
}

TEST(AllreduceTable, TellsVariantsOfOneAlgorithmApart) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce(1));
  rows.resize(1);
  EXPECT_THAT(collective_table(rows).csv(), Not(HasSubstr("chunks")));
  rows.push_back(rows[0]);
  rows[1].chunk_bytes = 4096;
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr("\"multi-ring 2x2 direct+ring, 4KiB chunks\""));
  rows[1].lanes = 2;
  rows[1].chunk_bytes = rows[0].chunk_bytes;
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr("\"multi-ring 2x2 direct+ring, 2 lanes\""));
  rows[1].patterns = "ring+ring";
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr("multi-ring 2x2 ring+ring,"));
  for (CollectiveRow& row : rows) row.dims = "4";
  rows[0].patterns = "direct";
  rows[1].patterns = "ring";
  rows[1].lanes = rows[0].lanes;
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr("\"multi-ring, ring\""));
  rows[1].ranks = 8;
  EXPECT_THAT(collective_table(rows).csv(), AllOf(HasSubstr("ranks,nodes,"), Not(HasSubstr("lanes"))));
}

TEST(AllreduceTable, SaysHowCallsWereTimed) {
  std::vector<CollectiveRow> rows = rows_of<CollectiveRow>(examples::allreduce());
  const std::string isolated = collective_table(rows).text();
  for (CollectiveRow& row : rows) row.timing.reset();
  EXPECT_EQ(collective_table(rows).text(), isolated) << "files of earlier versions say nothing";
  for (CollectiveRow& row : rows) row.timing = TimingMethod::osu;
  EXPECT_THAT(collective_table(rows).caption, HasSubstr("timed as OSU does"));
  for (CollectiveRow& row : rows) row.timing = TimingMethod::back_to_back;
  EXPECT_THAT(collective_table(rows).caption, HasSubstr("back to back"));
}

/// Times of two kinds are not compared, and the labels tell them apart.
TEST(AllreduceTable, KeepsTimingsApart) {
  std::vector<CollectiveRow> rows = rows_of<CollectiveRow>(examples::allreduce());
  std::vector<CollectiveRow> others = rows;
  for (CollectiveRow& row : others) row.timing = TimingMethod::osu;
  const std::size_t lines = collective_table(rows).size();
  const std::size_t compared = comparison_table(rows, "mpi").size();
  rows.insert(rows.end(), others.begin(), others.end());
  const Table both = collective_table(rows);
  EXPECT_EQ(both.size(), 2 * lines);
  EXPECT_THAT(both.text(), AllOf(HasSubstr("mpi, timing isolated"), HasSubstr("mpi, timing osu"),
                                 Not(HasSubstr("timed as"))));
  EXPECT_EQ(comparison_table(rows, "mpi").size(), 2 * compared);
}

TEST(AllreduceTable, HasNoFractionOfABoundThatDoesNotHold) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce(1));
  rows.resize(1);
  rows[0].time_us = timing({100, 99, 101});
  rows[0].bound_us = 100.5;
  rows[0].bound_fraction = 1.005;
  EXPECT_THAT(collective_table(rows).csv(), HasSubstr(",100.5,"));
  rows[0].bound_us = 104;  // as an earlier version wrote it
  rows[0].bound_fraction = 1.04;
  EXPECT_THAT(collective_table(rows).csv(), Not(HasSubstr(",104.0,")));
}

TEST(AllreduceTable, AdmitsThatFewSamplesMakeNoInterval) {
  EXPECT_THAT(collective_table(rows_of<CollectiveRow>(examples::allreduce(5))).caption,
              HasSubstr("less than 95 %"));
  EXPECT_EQ(collective_table(rows_of<CollectiveRow>(examples::allreduce(6))).caption, "4 ranks on 2 nodes");
}

TEST(ComparisonTable, GivesTheRatioOfPairs) {
  auto rows = rows_of<CollectiveRow>(examples::allreduce(1));
  const auto set = [&](std::size_t row, std::vector<double> samples) {
    set_time(rows[row], timing(std::move(samples)), "allreduce");
  };
  rows = {rows[0], rows[2]};  // multi-ring, mpi
  set(0, {1, 2, 3, 4, 5, 6});
  set(1, {2, 4, 6, 8, 10, 12});
  EXPECT_THAT(comparison_table(rows, "mpi").csv(), HasSubstr(",2.000,2.000,2.000,faster,"));
  EXPECT_THAT(comparison_table(rows, "multi-ring").csv(), HasSubstr(",0.500,0.500,0.500,slower,"));
  set(1, {2, 4, 6, 2, 2.5, 3});
  EXPECT_THAT(comparison_table(rows, "mpi").csv(), HasSubstr(",1.250,0.500,2.000,undecided,"));
  set(0, {1, 2});
  EXPECT_THAT(comparison_table(rows, "mpi").csv(), HasSubstr(",,,,not paired,"));
  set(1, {2, 4});
  EXPECT_THAT(comparison_table(rows, "mpi").csv(), HasSubstr(",too few samples,"));
}

TEST(ComparisonTable, NeedsItsBaseline) {
  const auto rows = rows_of<CollectiveRow>(examples::allreduce(1));
  try {
    comparison_table(rows, "nccl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("choose one of: mpi, multi-ring, ring"));
  }
}

TEST(ScaleTable, ComparesWithThePublishedFigureThatThereIs) {
  auto rows = rows_of<ScaleRow>(examples::scale());
  rows.resize(1);
  rows[0].speedup = 3.0;
  rows[0].efficiency = 0.75;
  rows[0].published_speedup = 2.0;
  EXPECT_THAT(scale_table(rows).csv(), HasSubstr(",+50.0\n"));
  rows[0].published_speedup.reset();
  rows[0].published_efficiency = 1.0;
  EXPECT_THAT(scale_table(rows).csv(), HasSubstr(",,100.0,-25.0\n"));
  rows[0].published_efficiency.reset();
  EXPECT_THAT(scale_table(rows).csv(), HasSubstr(",,,\n"));
}

TEST(ScaleTable, HasColumnsOfConditionsOnlyWhereSomeRowHasThem) {
  auto rows = rows_of<ScaleRow>(examples::scale());
  rows.resize(2);
  EXPECT_THAT(scale_table(rows).markdown(), AllOf(HasSubstr("95 % of steps from"), HasSubstr("feed"),
                                                  HasSubstr("limit"), HasSubstr("| compute |")));
  rows[1].iteration_low_ms.reset();
  rows[1].iteration_high_ms.reset();
  EXPECT_THAT(scale_table(rows).markdown(), AllOf(Not(HasSubstr("of steps")), HasSubstr("limit")));
  rows.resize(1);
  EXPECT_THAT(scale_table(rows).markdown(), AllOf(Not(HasSubstr("feed")), Not(HasSubstr("limit"))));
}

TEST(ScaleTable, OfStrongScalingSaysBothBatches) {
  auto rows = rows_of<ScaleRow>(examples::scale());
  EXPECT_THAT(scale_table(rows).caption, AllOf(HasSubstr("; batch 32"), Not(HasSubstr("global batch"))));
  for (ScaleRow& row : rows) {
    row.global_batch = 8192;
    row.batch = 8192 / row.gpus;
  }
  EXPECT_THAT(scale_table(rows).caption, AllOf(HasSubstr("global batch 8192"), Not(HasSubstr("; batch"))));
  EXPECT_THAT(scale_table(rows).csv(), HasSubstr("nodes,batch,"));
  EXPECT_THAT(scale_table(rows).csv(), HasSubstr("4x2,8,2,1024,"));
}

TEST(ScaleTable, ShowsInColumnsOnlyWhatVaries) {
  auto rows = rows_of<ScaleRow>(examples::scale());
  EXPECT_THAT(scale_table(rows).caption, HasSubstr("machine minsky"));
  rows[0].machine = "ac922";
  EXPECT_THAT(scale_table(rows).caption, Not(HasSubstr("machine")));
  EXPECT_THAT(scale_table(rows).csv(), testing::StartsWith("machine,algorithm,dims,gpus"));
}

TEST(TrendsTable, HasARowForEachRoundTheWorstFirst) {
  std::vector<CheckRow> rows = rows_of<CheckRow>(examples::accept());
  const Table table = trends_table(rows);
  EXPECT_EQ(table.size(), 6 * 8);
  EXPECT_EQ(table.cells(0), (std::vector<std::string>{"pairs.allreduce", "node1 and node3", "67108864",
                                                      "busbw", "1", "11.60", "10.10", "", "GB/s"}));
  EXPECT_EQ(table.cells(7)[5], "6.000");
  for (CheckRow& row : rows)
    if (row.trend) row.trend->resize(1);
  EXPECT_TRUE(trends_table(rows).empty()) << "one round has no trend";
}

}  // namespace
}  // namespace polyring
