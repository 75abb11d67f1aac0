#include "reports/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/result.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using examples::TemporaryFolder;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

/// Sets a variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class ReportTest : public testing::Test {
 protected:
  std::vector<fs::path> results() {
    return {write_result(folder_ / "out.json", examples::allreduce()),
            write_result(folder_ / "train.json", examples::train()),
            write_result(folder_ / "scale.json", examples::scale())};
  }
  /// Without pictures, which take seconds.
  Report report(const std::vector<fs::path>& files, const fs::path& out) {
    const Variable none("POLYRING_PYTHON", "/bin/false");
    return write_report(files, out);
  }
  TemporaryFolder folder_;
};

TEST_F(ReportTest, HoldsTablesDataAndHowTheyCameAbout) {
  const Report written = report(results(), folder_ / "r");
  EXPECT_EQ(written.folder, folder_ / "r");
  for (const char* name : {"report.md", "out.json", "out.csv", "train.json", "train.csv", "scale.json",
                           "scale.csv", "out-comparison.csv", "out-conditions.csv", "train-plans.csv",
                           "train-gpu-profile.csv", "scale-inputs.csv"}) {
    EXPECT_GT(fs::file_size(folder_ / "r" / name), 100u) << name;
  }
  const std::string text = read_file(folder_ / "r/report.md");
  EXPECT_THAT(text, HasSubstr("## Allreduce: out"));
  EXPECT_THAT(text, HasSubstr("### Against mpi"));
  EXPECT_THAT(text, HasSubstr("12.1 GB/s | InfiniBand Trade Association"));
  EXPECT_THAT(text, HasSubstr("hosts: alpha: ranks 0-1, beta: ranks 2-3"));
  EXPECT_THAT(text, HasSubstr("`polyring scale --machine minsky"));
  EXPECT_THAT(text, HasSubstr("| alpha | 2 | 4 | 2 | 1.8 | 0.5 |  |  |  | 0.25 |  |  |\n"));
  EXPECT_THAT(text,
              HasSubstr("| beta | 2 | 4 | not bound | 1.8 | 0.0 | 0.2 | 2.5 | 1.5 | 0.12 | performance | "
                        "1200 to 2300 |\n"));
  EXPECT_EQ(read_file(folder_ / "r/out.json"), read_file(folder_ / "out.json"));
}

TEST_F(ReportTest, SaysHowManyPublishedRunsLieInside) {
  report({write_result(folder_ / "p.json", examples::published_runs())}, folder_ / "r");
  const std::string text = read_file(folder_ / "r/report.md");
  EXPECT_THAT(text, testing::StartsWith(
                        "# What others published\n\n2 of 3 published training runs that were held out lie "
                        "inside the modelled range; its middle is off by 8.7 points on average, +8.0 with "
                        "the sign. Of those that were seen before, 1 of 1 lie inside; the middle is off by "
                        "4.0 points, +4.0. Of those with something unpublished, 1 of 1 lie inside the range "
                        "of all combinations. They only check the model: nothing in it is fitted to them."));
  EXPECT_THAT(
      text, HasSubstr("| bert-512 | held out | ddp | 512 | 75.0 | 93.0 | 98.0 | 100.0 | outside | waiting"));
  EXPECT_THAT(text, Not(HasSubstr("algorithm")));
  EXPECT_THAT(read_file(folder_ / "r/p-published-runs.csv"),
              HasSubstr("h100-resnet50,held out,ddp,8,98.0,92.0,97.0"));
}

TEST_F(ReportTest, ScalingTablesAndPublishedRunsStandApart) {
  ResultFile both = examples::scale();
  auto& rows = std::get<std::vector<ScaleRow>>(both.rows);
  const ResultFile published = examples::published_runs();
  const auto& more = std::get<std::vector<ScaleRow>>(published.rows);
  rows.insert(rows.end(), more.begin(), more.end());
  report({write_result(folder_ / "both.json", both)}, folder_ / "r");
  const std::string text = read_file(folder_ / "r/report.md");
  EXPECT_THAT(text, HasSubstr("machine minsky; model resnet50"));
  EXPECT_THAT(text, HasSubstr("### Published training runs"));
  EXPECT_EQ(text.find("a published system"), std::string::npos);
}

TEST_F(ReportTest, TheHeadlineOfScalingHasItsRangeAndItsWidestUnknown) {
  ResultFile file = examples::scale();
  for (ScaleRow& row : std::get<std::vector<ScaleRow>>(file.rows)) {
    if (row.algorithm != "multi-ring") continue;
    row.efficiency_low = row.efficiency - 0.07;
    row.efficiency_high = row.efficiency + 0.02;
    row.widest_unknown = "part of the rate of RoCE that allreduces reach";
  }
  report({write_result(folder_ / "s.json", file)}, folder_ / "r");
  EXPECT_THAT(
      read_file(folder_ / "r/report.md"),
      testing::StartsWith(
          "# Polyring report\n\n"
          "resnet50 on minsky: multi-ring reaches an efficiency of 96.2 % (89.2 to 98.2) at 256 GPUs, "
          "modelled; 94.7 % is published. "
          "Most of the range of multi-ring comes from part of the rate of RoCE that allreduces reach."));
}

TEST_F(ReportTest, SeveralTitlesAreThoseOfTheirResultsAlone) {
  ResultFile first = examples::scale();
  ResultFile other = examples::scale();
  first.title = "Four NICs";
  other.title = "One NIC";
  const std::vector<fs::path> files{write_result(folder_ / "a.json", first),
                                    write_result(folder_ / "b.json", other)};
  report(files, folder_ / "r");
  EXPECT_THAT(read_file(folder_ / "r/report.md"),
              testing::AllOf(testing::StartsWith("# Polyring report"), HasSubstr("## Scaling: Four NICs"),
                             HasSubstr("## Scaling: One NIC")));
}

TEST_F(ReportTest, ATitleIsOneShortLineWithoutMarkup) {
  ResultFile file = examples::scale();
  file.title = "# *bold*\n<b>" + std::string(300, 'x');
  report({write_result(folder_ / "a.json", file)}, folder_ / "r");
  const std::string text = read_file(folder_ / "r/report.md");
  EXPECT_THAT(text, testing::StartsWith("# # \\*bold\\*"));
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_THAT(first, AllOf(HasSubstr("&lt;b>xxx"), testing::EndsWith("x…")));
  EXPECT_LT(first.size(), 120u);
}

TEST_F(ReportTest, ShowsTheLeavesByWhichHostsWereJudged) {
  report({write_result(folder_ / "accept.json", examples::accept())}, folder_ / "r");
  EXPECT_THAT(read_file(folder_ / "r/report.md"),
              HasSubstr("leaf switches: leaf0: node0, node2; leaf1: node1; not known: node3\n"));
}

TEST_F(ReportTest, WithoutMatplotlibAndJinja2SaysSoInASentenceEach) {
  const Report written = report(results(), folder_ / "r");
  ASSERT_EQ(written.warnings.size(), 2u);
  EXPECT_THAT(written.warnings[0], HasSubstr("no charts"));
  EXPECT_THAT(written.warnings[1], HasSubstr("no page: "));
  EXPECT_EQ(written.first, folder_ / "r/report.md");
  EXPECT_THAT(read_file(folder_ / "r/report.md"), HasSubstr(written.warnings[0]));
  const Variable missing("POLYRING_PYTHON", "/nonexistent/python");
  EXPECT_THAT(write_report(results(), folder_ / "s").warnings.at(0), HasSubstr("/nonexistent/python"));
}

TEST_F(ReportTest, NeverReplacesAFolderWithSomethingInIt) {
  const auto files = results();
  fs::create_directory(folder_ / "r");
  EXPECT_EQ(report(files, folder_ / "r/").folder, folder_ / "r") << "an empty folder is used";
  EXPECT_EQ(report(files, folder_ / "r").folder, folder_ / "r.1");
  EXPECT_EQ(report(files, folder_ / "r").folder, folder_ / "r.2");
  write_file(folder_ / "f", "mine");
  EXPECT_EQ(report(files, folder_ / "f").folder, folder_ / "f.1");
  EXPECT_EQ(read_file(folder_ / "f"), "mine");
  EXPECT_EQ(report(files, folder_ / "a/b/c").folder, folder_ / "a/b/c");
}

TEST_F(ReportTest, OfABadResultWritesNothing) {
  std::vector<fs::path> files = results();
  write_file(folder_ / "bad.json", "{");
  files.push_back(folder_ / "bad.json");
  EXPECT_THROW(report(files, folder_ / "r"), Error);
  EXPECT_FALSE(fs::exists(folder_ / "r"));
  EXPECT_THROW(report({}, folder_ / "r"), Error);
}

TEST_F(ReportTest, IntoAnImpossibleFolderIsAUsageError) {
  const auto files = results();
  for (const fs::path& bad : {folder_ / "out.json/r", fs::path("/proc/r"), fs::path("")}) {
    try {
      report(files, bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr("cannot write '" + bad.string() + "'"));
    }
  }
}

TEST_F(ReportTest, LeavesNoTemporaryFolderBehind) {
  const auto files = results();
  report(files, folder_ / "r");
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_THAT(entry.path().filename().string(), Not(testing::StartsWith(".")));
  }
}

TEST_F(ReportTest, KeepsResultsOfOneNameApart) {
  fs::create_directory(folder_ / "other");
  const std::vector<fs::path> files{write_result(folder_ / "my run.json", examples::train()),
                                    write_result(folder_ / "other/my run.json", examples::scale())};
  report(files, folder_ / "r");
  EXPECT_TRUE(fs::exists(folder_ / "r/my-run.json"));
  EXPECT_TRUE(fs::exists(folder_ / "r/my-run-2.json"));
}

TEST_F(ReportTest, KeepsTablesApartFromResultsOfTheirNames) {
  const std::vector<fs::path> files{write_result(folder_ / "a.json", examples::scale()),
                                    write_result(folder_ / "a-inputs.json", examples::train())};
  report(files, folder_ / "r");
  EXPECT_THAT(read_file(folder_ / "r/a-inputs.csv"), testing::StartsWith("input,value,source\n"));
  EXPECT_TRUE(fs::exists(folder_ / "r/a-inputs-2.json"));
}

TEST_F(ReportTest, LinksTheChartsThatWereDrawn) {
  if (std::string(POLYRING_CHARTS_PYTHON).empty()) GTEST_SKIP() << "no Python with matplotlib";
  const Variable python("POLYRING_PYTHON", POLYRING_CHARTS_PYTHON);
  const Report written = write_report(results(), folder_ / "r");
  EXPECT_THAT(written.warnings, IsEmpty());
  const std::string text = read_file(written.folder / "report.md");
  for (const char* chart :
       {"out-bus-bandwidth", "out-latency", "out-ratio", "train-timeline", "scale-scaling"}) {
    EXPECT_NE(text.find(fmt::format("]({}.png)", chart)), std::string::npos) << chart;
    EXPECT_GT(fs::file_size(written.folder / fmt::format("{}.png", chart)), 10000u);
    EXPECT_GT(fs::file_size(written.folder / fmt::format("{}.svg", chart)), 10000u);
  }
  EXPECT_LT(text.find("out-bus-bandwidth"), text.find("out-latency"));
  EXPECT_EQ(written.first, written.folder / "index.html");
  EXPECT_GT(fs::file_size(written.first), 50000u);
  EXPECT_THAT(text, Not(HasSubstr("Runs side by side")));
}

TEST_F(ReportTest, DrawsRunsSideBySide) {
  if (std::string(POLYRING_CHARTS_PYTHON).empty()) GTEST_SKIP() << "no Python with matplotlib";
  const Variable python("POLYRING_PYTHON", POLYRING_CHARTS_PYTHON);
  const std::vector<fs::path> files{write_result(folder_ / "overlay.json", examples::allreduce()),
                                    write_result(folder_ / "b.json", examples::allreduce(6))};
  const Report written = write_report(files, folder_ / "r", true);
  EXPECT_THAT(written.warnings, IsEmpty());
  const std::string text = read_file(written.folder / "report.md");
  EXPECT_THAT(text, AllOf(HasSubstr("## Runs side by side"), HasSubstr("](overlay-bus-bandwidth.png)"),
                          HasSubstr("](overlay-latency.png)"), HasSubstr("](overlay-2-latency.png)"),
                          HasSubstr("](b-ratio.png)")));
  EXPECT_GT(fs::file_size(written.folder / "overlay-latency.png"), 10000u);
}

TEST_F(ReportTest, RefusesToDrawSideBySideWhatCannotBeCompared) {
  if (std::string(POLYRING_CHARTS_PYTHON).empty()) GTEST_SKIP() << "no Python with matplotlib";
  const Variable python("POLYRING_PYTHON", POLYRING_CHARTS_PYTHON);
  try {
    write_report(results(), folder_ / "r", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), testing::StartsWith("'train' is of polyring train, and only runs of one"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "r"));
}

}  // namespace
}  // namespace polyring
