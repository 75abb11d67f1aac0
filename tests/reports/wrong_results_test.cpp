// Wrong results reach what a report says first, whether rows or notes tell of them.
#include "reports/wrong_results.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/report_findings.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ReportFinding finding_of(const ResultFile& result) {
  ReportSection section;
  section.name = "out";
  section.result = result;
  const std::vector<ReportFinding> findings = findings_of(std::span(&section, 1));
  return findings.empty() ? ReportFinding{} : findings.front();
}

std::vector<CollectiveRow>& rows_of(ResultFile& result) {
  return std::get<std::vector<CollectiveRow>>(result.rows);
}

TEST(WrongResults, OfRowsAreCounted) {
  ResultFile result = examples::allreduce();
  EXPECT_FALSE(wrong_results(result).any());
  EXPECT_EQ(finding_of(result).level, "none");
  rows_of(result)[2].wrong = 7;
  rows_of(result)[3].wrong.reset();  // not checked
  EXPECT_EQ(wrong_results(result).rows, 1u);
  EXPECT_EQ(finding_of(result).level, "fail");
  EXPECT_EQ(finding_of(result).word, "WRONG");
  EXPECT_EQ(finding_of(result).text,
            fmt::format("1 of {} rows have wrong results (out).", rows_of(result).size()));
}

TEST(WrongResults, ComeBeforeWhatSoftwareGpusSay) {
  ResultFile result = examples::allreduce();
  EXPECT_THAT(finding_of(result).text, HasSubstr("times as fast as"));
  result.versions["gpu"] = "NVIDIA H100";
  EXPECT_THAT(finding_of(result).text, HasSubstr("times as fast as"));
  result.versions["gpu"] = "software GPU (device 0)";
  EXPECT_EQ(finding_of(result).text, "out: its GPUs are software for tests, so its times say nothing.");
  rows_of(result)[2].wrong = 7;
  EXPECT_EQ(finding_of(result).word, "WRONG");
}

/// A contender of ours that was wrong has a note and no row.
TEST(WrongResults, OfNotesAreFoundAlsoWhereNoRowIsLeft) {
  ResultFile result = examples::allreduce();
  CollectiveRow wrong = rows_of(result).front();
  wrong.algorithm = "ring";
  wrong.size_bytes = 4096;
  wrong.in_place = true;
  wrong.wrong = 3;
  result.notes.push_back(wrong_note(wrong));
  EXPECT_EQ(result.notes.back(),
            "Wrong results: ring of 4096 bytes in place gave 3 wrong elements and was not timed.");
  result.notes.push_back("Wrong results of some collective: see line 7");
  EXPECT_THAT(wrong_results(result).notes,
              ElementsAre("ring of 4096 bytes in place gave 3 wrong elements and was not timed.",
                          "Wrong results of some collective: see line 7"));
  const std::string text =
      "ring of 4096 bytes in place gave 3 wrong elements and was not timed; 1 more of its notes say such a "
      "thing (out).";
  EXPECT_EQ(finding_of(result).text, text);
  rows_of(result).clear();
  EXPECT_EQ(finding_of(result).word, "WRONG");
  EXPECT_EQ(finding_of(result).text, text);
  result.rows = std::get<std::vector<TrainRow>>(examples::train().rows);
  EXPECT_EQ(finding_of(result).text, text) << "of train, too";
}

TEST(WrongResults, OtherNotesAreNone) {
  ResultFile result = examples::allreduce();
  result.notes = {"Times are medians", "No wrong results were found"};
  EXPECT_THAT(wrong_results(result).notes, IsEmpty());
  EXPECT_THAT(finding_of(result).text, HasSubstr("multi-ring is 1.57 times as fast as mpi"));
}

}  // namespace
}  // namespace polyring
