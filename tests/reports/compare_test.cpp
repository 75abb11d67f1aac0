// Runs side by side: which rows stand beside which, and what is said of them.
#include "reports/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "reports/compare_summary.hpp"
#include "reports/compare_text.hpp"
#include "reports/differences.hpp"
#include "reports/not_comparable.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<CollectiveRow>& rows(ResultFile& result) {
  return std::get<std::vector<CollectiveRow>>(result.rows);
}

/// All times of a result, or those of an algorithm, times a factor.
ResultFile scaled(ResultFile result, double factor, const std::string& algorithm = "") {
  for (CollectiveRow& row : rows(result)) {
    if (!algorithm.empty() && row.algorithm != algorithm) continue;
    std::vector<double> samples = row.time_us.samples;
    for (double& sample : samples) sample *= factor;
    set_time(row, timing(samples), result.collective);
  }
  return result;
}

ResultFile without_samples(ResultFile result) {
  for (CollectiveRow& row : rows(result)) {
    row.time_us = exact_timing(row.time_us.median);
    row.source = Source::imported;
    row.timing = TimingMethod::back_to_back;
  }
  result.placement.clear();
  result.environment.clear();
  result.versions.clear();
  result.machine = "null";
  result.notes = {"Times are means over calls and ranks, and not medians"};
  return result;
}

ResultFile only(ResultFile result, const std::string& algorithm) {
  std::erase_if(rows(result), [&](const CollectiveRow& row) { return row.algorithm != algorithm; });
  return result;
}

std::vector<ComparedRun> runs_of(const std::vector<ResultFile>& results) {
  std::vector<ComparedRun> runs;
  for (const ResultFile& result : results)
    runs.push_back(runs_of_file(fmt::format("run{}.json", runs.size()), {result}).front());
  label_runs(runs);
  return runs;
}

const ComparedLine& line_of(const ComparedTable& table, const std::string& contender, std::uint64_t size,
                            bool in_place = false) {
  const auto found = std::ranges::find_if(table.lines, [&](const ComparedLine& line) {
    return line.contender == contender && line.size_bytes == size && line.in_place == in_place;
  });
  EXPECT_NE(found, table.lines.end()) << contender << " " << size;
  return *found;
}

const RunDifference* find_difference(const RunDifferences& differences, const std::string& what) {
  const auto found =
      std::ranges::find(differences.differing, what, [](const RunDifference& of) { return of.what; });
  return found == differences.differing.end() ? nullptr : &*found;
}

TEST(Compare, SetsLikeBesideLikeAndTheFastestOfEach) {
  const ResultFile base = examples::allreduce();
  const auto runs = runs_of({base, scaled(base, 0.5, "multi-ring")});
  const Comparison comparison = compare_runs(runs, 0);
  ASSERT_EQ(comparison.tables.size(), 1u);
  const ComparedTable& table = comparison.tables[0];
  EXPECT_EQ(title_of(table), "allreduce of float32, sum");
  EXPECT_TRUE(table.lines.front().contender.empty()) << "the fastest come first";
  const std::uint64_t size = table.lines.back().size_bytes;
  const ComparedLine& multi = line_of(table, "multi-ring", size);
  EXPECT_EQ(multi.cells[0].finding, Finding::baseline);
  EXPECT_EQ(multi.cells[1].finding, Finding::faster);
  EXPECT_NEAR(multi.cells[1].ratio->median, 0.5, 0.001);
  EXPECT_LT(multi.cells[1].ratio->ci_high, 0.6);
  const ComparedLine& ring = line_of(table, "ring", size);
  EXPECT_EQ(ring.cells[1].finding, Finding::undecided);
  EXPECT_DOUBLE_EQ(ring.cells[1].ratio->median, 1);
  const ComparedLine& best = line_of(table, "", size);
  for (const ComparedCell& cell : best.cells) {
    for (const CollectiveRow& row : collective_rows(*cell.result)) {
      if (row.size_bytes == size && !row.in_place) {
        EXPECT_LE(cell.row->time_us.median, row.time_us.median);
      }
    }
  }
}

TEST(Compare, AnotherBaselineTurnsTheRatioAround) {
  const ResultFile base = only(examples::allreduce(), "ring");
  const auto runs = runs_of({base, scaled(base, 0.5)});
  const Comparison comparison = compare_runs(runs, 1);
  const ComparedLine& line = comparison.tables[0].lines.front();
  EXPECT_NEAR(line.cells[0].ratio->median, 2, 0.001);
  EXPECT_EQ(line.cells[0].finding, Finding::slower);
  EXPECT_EQ(line.contender, "ring") << "one contender needs no fastest";
}

TEST(Compare, WithOneContenderEachTheFastestSayAll) {
  const ResultFile base = examples::allreduce();
  const auto runs = runs_of({only(base, "ring"), only(base, "mpi")});
  const Comparison comparison = compare_runs(runs, 0);
  for (const ComparedLine& line : comparison.tables[0].lines) EXPECT_TRUE(line.contender.empty());
  EXPECT_THAT(compared_table(runs, comparison, comparison.tables[0]).text(),
              HasSubstr("best: A ring, B mpi"));
}

TEST(Compare, SaysWhyARatioIsNotReal) {
  const ResultFile base = only(examples::allreduce(), "ring");
  ResultFile few = only(examples::allreduce(4), "ring");
  ResultFile other = base;
  for (CollectiveRow& row : rows(other)) row.timing = TimingMethod::back_to_back;
  ResultFile wrong = base;
  for (CollectiveRow& row : rows(wrong)) row.wrong = 3;
  ResultFile bare = without_samples(base);
  for (CollectiveRow& row : rows(bare)) row.timing = TimingMethod::isolated;
  const auto runs = runs_of({base, few, other, wrong, bare});
  const Comparison comparison = compare_runs(runs, 0);
  const ComparedLine& line = comparison.tables[0].lines.front();
  EXPECT_EQ(line.cells[1].finding, Finding::few_samples);
  EXPECT_EQ(line.cells[2].finding, Finding::other_timing);
  EXPECT_EQ(line.cells[3].finding, Finding::wrong);
  EXPECT_FALSE(line.cells[3].ratio) << "what is wrong has no time";
  EXPECT_EQ(line.cells[4].finding, Finding::no_samples);
  EXPECT_TRUE(line.cells[4].ratio);
  const auto notes = not_comparable(runs, comparison);
  EXPECT_THAT(notes, Contains(HasSubstr("--timing back-to-back measures as C did")));
  EXPECT_THAT(notes, Contains(HasSubstr("results of D are wrong")));
  EXPECT_THAT(notes, Contains(HasSubstr("A has medians of samples, and E means without samples")));
  const std::string text = compared_table(runs, comparison, comparison.tables[0]).text();
  EXPECT_THAT(text, HasSubstr("no samples"));
  EXPECT_THAT(text, HasSubstr("wrong result"));
}

TEST(Compare, SaysThatResultsAreWrongWhoeverSaysSo) {
  const ResultFile base = only(examples::allreduce(), "ring");
  ResultFile noted = base;
  noted.notes.push_back("Wrong results: errors from line 7 on");
  const auto both = runs_of({base, noted});
  EXPECT_THAT(not_comparable(both, compare_runs(both, 0)),
              Contains("Some results of B are wrong, and no row says which: see its notes."));
  ResultFile wrong = base;
  rows(wrong).front().wrong = 3;
  const auto alone = runs_of({wrong});
  EXPECT_THAT(not_comparable(alone, compare_runs(alone, 0)),
              ElementsAre("1 result of A is wrong: what is wrong has no time."));
  rows(wrong).clear();
  wrong.notes = noted.notes;
  try {
    runs_of_file("x.json", {wrong});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("all that 'x.json' measured was wrong"));
  }
}

TEST(Compare, OfOtherRankCountsComparesBusBandwidthAlone) {
  const ResultFile base = only(examples::allreduce(), "ring");
  ResultFile twice = scaled(base, 1.5);
  for (CollectiveRow& row : rows(twice)) row.ranks = 8;
  twice = scaled(twice, 1);  // busbw anew
  const auto runs = runs_of({base, twice});
  const Comparison comparison = compare_runs(runs, 0);
  ASSERT_EQ(comparison.tables.size(), 1u);
  EXPECT_TRUE(comparison.tables[0].by_busbw[1]);
  const ComparedCell& cell = comparison.tables[0].lines.front().cells[1];
  EXPECT_NEAR(cell.ratio->median, (2 * 7.0 / 8) / (2 * 3.0 / 4) / 1.5, 0.001);
  EXPECT_LE(cell.ratio->ci_low, cell.ratio->median);
  EXPECT_GE(cell.ratio->ci_high, cell.ratio->median);
  EXPECT_EQ(cell.finding, Finding::slower);
  EXPECT_THAT(not_comparable(runs, comparison), Contains(HasSubstr("A has 4 ranks and B 8")));
  EXPECT_THAT(summary_sentences(runs, comparison),
              ElementsAre(HasSubstr("reaches 0.78 of A's bus bandwidth")));
  const std::string text = compared_table(runs, comparison, comparison.tables[0]).text();
  EXPECT_THAT(text, HasSubstr("B / A, busbw"));
  EXPECT_THAT(text, HasSubstr("lower"));
}

TEST(Compare, OfSeveralRankCountsInARunAlignsEqualOnes) {
  ResultFile four = only(examples::allreduce(), "ring");
  ResultFile eight = four;
  for (CollectiveRow& row : rows(eight)) row.ranks = 8;
  std::vector<ComparedRun> runs = runs_of_file("imb.log", {four, eight});
  ASSERT_EQ(runs.size(), 1u);
  runs.push_back(runs_of_file("b.json", {eight}).front());
  label_runs(runs);
  const Comparison comparison = compare_runs(runs, 0);
  ASSERT_EQ(comparison.tables.size(), 2u);
  EXPECT_EQ(comparison.tables[1].ranks, 8);
  EXPECT_FALSE(comparison.tables[1].by_busbw[1]);
  EXPECT_TRUE(comparison.tables[1].lines.front().cells[0].ratio ||
              comparison.tables[1].lines.front().cells[1].ratio);
  EXPECT_THAT(not_comparable(runs, comparison),
              Contains(HasSubstr("Only A has allreduce of float32, sum, 4 ranks.")));
}

TEST(Compare, AFileWithTwoOfAKindIsTwoRuns) {
  const ResultFile result = only(examples::allreduce(), "ring");
  const auto runs = runs_of_file("two.log", {result, result});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].name, "two.log #2");
}

TEST(Compare, TypesDoNotMatterWhereNothingIsReduced) {
  ResultFile gathered = only(examples::allreduce(), "ring");
  gathered.collective = "allgather";
  ResultFile bytes = gathered;
  for (CollectiveRow& row : rows(bytes)) row.dtype = "int8";
  EXPECT_EQ(compare_runs(runs_of({gathered, bytes}), 0).tables.size(), 1u);
}

TEST(Compare, RefusesWhatHasNothingInCommon) {
  ResultFile floats = only(examples::allreduce(), "ring");
  ResultFile doubles = floats;
  for (CollectiveRow& row : rows(doubles)) row.dtype = "double";
  const auto runs = runs_of({floats, doubles});
  try {
    compare_runs(runs, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("run1.json has allreduce of double, sum"));
  }
  EXPECT_THROW(runs_of_file("train.json", {examples::train()}), Error);
  rows(floats).clear();
  EXPECT_THROW(runs_of_file("empty.json.part", {floats}), Error);
}

TEST(Compare, TellsWhatOnlyOneHas) {
  const ResultFile base = only(examples::allreduce(), "ring");
  ResultFile part = base;
  const std::uint64_t largest = rows(part).back().size_bytes;
  std::erase_if(rows(part),
                [&](const CollectiveRow& row) { return row.size_bytes == largest || row.in_place; });
  part.partial = "12 of 34 measurements";
  const auto runs = runs_of({base, part});
  const auto notes = not_comparable(runs, compare_runs(runs, 0));
  EXPECT_THAT(notes, Contains(HasSubstr("Only A has allreduce of float32, sum: ")));
  EXPECT_THAT(notes,
              Contains(HasSubstr("B did not come to its end: its allreduce has 12 of 34 measurements.")));
}

TEST(Compare, SumsUpStretchesOfSizes) {
  const ResultFile base = only(examples::allreduce(), "ring");
  ResultFile mixed = base;
  const std::uint64_t largest = rows(mixed).back().size_bytes;
  for (CollectiveRow& row : rows(mixed)) {
    if (row.size_bytes < largest) continue;
    std::vector<double> samples = row.time_us.samples;
    for (double& sample : samples) sample *= 0.8;
    set_time(row, timing(samples), "allreduce");
  }
  const auto runs = runs_of({base, mixed});
  EXPECT_THAT(summary_sentences(runs, compare_runs(runs, 0)),
              ElementsAre(testing::AllOf(HasSubstr("B's ring, in and out of place: "),
                                         HasSubstr("no difference shows"),
                                         HasSubstr("takes 0.80 of A's time at"), HasSubstr("is real"))));
  const auto imported = runs_of({base, without_samples(scaled(base, 1.3))});
  EXPECT_THAT(summary_sentences(imported, compare_runs(imported, 0)),
              ElementsAre(testing::AllOf(HasSubstr("takes 1.30 of A's time from"), Not(HasSubstr("real:")),
                                         HasSubstr("timed in different ways"))));
}

TEST(Differences, OfTheSameRunAreNone) {
  const ResultFile base = examples::allreduce();
  const auto runs = runs_of({base, base});
  const RunDifferences differences = differences_of(runs);
  EXPECT_THAT(differences.differing, IsEmpty());
  EXPECT_THAT(differences.recorded_in_one, IsEmpty());
  EXPECT_THAT(differences.same, Contains("ranks 4"));
  EXPECT_THAT(differences.same, Contains("machine"));
}

TEST(Differences, NameEachThatIsRecorded) {
  const ResultFile base = examples::allreduce();
  ResultFile other = base;
  other.versions["mpi"] = "Open MPI 5.0.1";
  other.environment["NCCL_ALGO"] = "Ring";
  other.placement = {{0, "alpha"}, {1, "beta"}, {2, "alpha"}, {3, "beta"}};
  other.machine = R"({"hosts":[{"name":"alpha"},{"name":"gamma"}]})";
  other.command += " -c 0 -J elsewhere.json";
  for (CollectiveRow& row : rows(other)) {
    row.timing = TimingMethod::osu;
    if (row.algorithm == "multi-ring") row.lanes = 2;
  }
  const auto runs = runs_of({base, other});
  const RunDifferences differences = differences_of(runs);
  const auto values = [&](const std::string& what) {
    const RunDifference* const found = find_difference(differences, what);
    return found == nullptr ? std::vector<std::string>{} : found->values;
  };
  EXPECT_THAT(values("mpi"), ElementsAre("Open MPI 4.1.4", "Open MPI 5.0.1"));
  EXPECT_THAT(values("NCCL_ALGO"), ElementsAre("-", "Ring"));
  EXPECT_THAT(values("placement"), ElementsAre("2 a host, host after host", "2 a host, hosts by turns"));
  EXPECT_THAT(values("machine hosts/1/name"), ElementsAre("beta", "gamma"));
  EXPECT_THAT(values("timing"), ElementsAre("isolated calls", "calls after barriers, as OSU"));
  EXPECT_THAT(values("command"), ElementsAre("-", "-c 0"));
  EXPECT_EQ(std::ranges::count_if(differences.differing,
                                  [](const auto& of) { return of.what.starts_with("multi-ring's plan at"); }),
            1);
  EXPECT_EQ(find_difference(differences, "ranks"), nullptr);
}

TEST(Differences, OfConditionsAreThoseAboveNoise) {
  ResultFile base = examples::allreduce();
  HostConditions host;
  host.host = "alpha";
  host.cpus = 8;
  host.least_cpus_of_rank = host.most_cpus_of_rank = 1;
  host.other_cpus = 0.1;
  host.governor = "performance";
  base.conditions = {host};
  ResultFile other = base;
  other.conditions->front().other_cpus = 0.2;
  other.conditions->front().governor = "powersave";
  other.conditions->front().most_cpus_of_rank = 8;
  RunDifferences differences = differences_of(runs_of({base, other}));
  EXPECT_EQ(find_difference(differences, "used by other programs"), nullptr);
  ASSERT_NE(find_difference(differences, "CPU governor"), nullptr);
  EXPECT_THAT(find_difference(differences, "CPUs of a rank")->values, ElementsAre("1 of 8", "1 to 8 of 8"));
  other.conditions->front().other_cpus = 2;
  differences = differences_of(runs_of({base, other}));
  EXPECT_NE(find_difference(differences, "used by other programs"), nullptr);
}

/// Runs on such hosts, with least and most clocks in MHz; 0: unknown.
ResultFile on_clocks(const std::vector<std::pair<double, double>>& clocks) {
  ResultFile result = examples::allreduce();
  std::vector<HostConditions> conditions;
  for (const auto& [least, most] : clocks) {
    HostConditions& host = conditions.emplace_back();
    host.host = fmt::format("host{}", conditions.size() - 1);
    if (most == 0) continue;
    host.least_clock_MHz = least;
    host.most_clock_MHz = most;
  }
  result.conditions = conditions;
  return result;
}

TEST(Differences, OfClocksAreThoseAboveNoise) {
  const auto clocks = [](const std::vector<ResultFile>& results) {
    const RunDifferences differences = differences_of(runs_of(results));
    const RunDifference* const found = find_difference(differences, "CPU clock");
    return found == nullptr ? std::vector<std::string>{} : found->values;
  };
  const ResultFile base = on_clocks({{2300, 2300}, {2300, 2310}});
  const ResultFile near = on_clocks({{2270, 2300}, {2300, 2340}});
  EXPECT_THAT(clocks({base, near}), IsEmpty()) << "2 %";
  EXPECT_THAT(differences_of(runs_of({base, near})).same, Contains("CPU clock 2310 MHz"));
  EXPECT_THAT(clocks({base, on_clocks({{2300, 2300}, {1200, 2310}})}),
              ElementsAre("2310 MHz", "1200 to 2310 MHz, least on host1"));
  EXPECT_THAT(clocks({base, on_clocks({{1500, 3000}, {1510, 3000}})}),
              ElementsAre("2310 MHz", "1500 to 3000 MHz"));
  const ResultFile unknown = on_clocks({{0, 0}, {0, 0}});
  EXPECT_THAT(clocks({base, unknown}), IsEmpty());
  EXPECT_THAT(differences_of(runs_of({base, unknown})).recorded_in_one, Contains("CPU clock"));
  EXPECT_THAT(clocks({base, unknown, on_clocks({{3000, 3000}})}), ElementsAre("2310 MHz", "?", "3000 MHz"));
}

TEST(Differences, WhatALogDoesNotSayIsNone) {
  const ResultFile base = examples::allreduce();
  const RunDifferences differences = differences_of(runs_of({base, without_samples(base)}));
  EXPECT_THAT(differences.recorded_in_one, Contains("mpi"));
  EXPECT_THAT(differences.recorded_in_one, Contains("OMP_NUM_THREADS"));
  EXPECT_EQ(find_difference(differences, "mpi"), nullptr);
  ASSERT_NE(find_difference(differences, "times"), nullptr);
  EXPECT_EQ(find_difference(differences, "times")->values[1], "means without samples");
}

TEST(Differences, NotesAreToldOnce) {
  const ResultFile base = examples::allreduce();
  EXPECT_THAT(notes_of_runs(runs_of({base, base})), ElementsAre("A, B: 2 ranks a core: timings are noisy"));
}

TEST(CompareText, ForProgramsHasARowForEachRun) {
  const ResultFile base = only(examples::allreduce(), "ring");
  const auto runs = runs_of({base, scaled(base, 2)});
  const Comparison comparison = compare_runs(runs, 0);
  EXPECT_EQ(compared_rows(runs, comparison).size(), 2 * collective_rows(base).size());
  EXPECT_THAT(compared_rows(runs, comparison).csv(), HasSubstr("ratio_low,ratio_high,finding"));
}

TEST(CompareText, ShowsJudgements) {
  const ResultFile base = only(examples::allreduce(), "ring");
  const auto runs = runs_of({base, base});
  Comparison comparison = compare_runs(runs, 0);
  ComparedTable& table = comparison.tables[0];
  for (ComparedLine& line : table.lines)
    for (ComparedCell& cell : line.cells)
      cell.judged = Judgement{.bound_fraction = 0.5,
                              .limit = "two ports",
                              .expected_GBps = {},
                              .basis = "",
                              .verdict = "no data"};
  EXPECT_THAT(compared_table(runs, comparison, table).text(), HasSubstr("verdict of all: no data"));
  EXPECT_THAT(judgement_sentences(runs, table), ElementsAre("A, B: two ports"));
  table.lines.front().cells[1].judged = Judgement{.bound_fraction = 0.9,
                                                  .limit = "two ports",
                                                  .expected_GBps = {{1, 2}},
                                                  .expected_fraction = 1.23,
                                                  .basis = "a figure",
                                                  .verdict = "pass"};
  const std::string text = compared_table(runs, comparison, table).text();
  EXPECT_THAT(text, HasSubstr("pass"));
  EXPECT_THAT(text, HasSubstr("90.0"));
  EXPECT_THAT(text, HasSubstr("1.000..2.000"));
  EXPECT_THAT(text, HasSubstr("123"));
}

}  // namespace
}  // namespace polyring
