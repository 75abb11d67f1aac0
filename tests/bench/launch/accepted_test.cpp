// The verdict of jobs of `polyring accept` by the journals that they left.
#include "bench/launch/accepted.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.hpp"
#include "reports/journal.hpp"
#include "reports/verdicts.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using examples::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kKilled = static_cast<ExitCode>(137);

/// A run of two rounds, in the third, where all has passed.
class Accepted : public ::testing::Test {
 protected:
  Accepted() : journal_(folder_ / "a.json", header(), 2) {
    CheckRow row;
    row.check = "links";
    row.verdict = Verdict::pass;
    row.trend.emplace();
    journal_.add(RoundChange{{2, {}, 60}, {{0, row}}, {}}, 1);
  }

  ExitCode tell(ExitCode code) {
    const std::vector<std::string> program{"polyring", "accept", "-J", "a.json", "--junit", junit().string()};
    ::testing::internal::CaptureStdout();
    const ExitCode told = tell_verdict(journal_.path(), program, "mpirun ended with exit code 137", code);
    said_ = ::testing::internal::GetCapturedStdout();
    return told;
  }
  std::filesystem::path junit() const { return folder_ / "a.xml"; }

  TemporaryFolder folder_;
  Journal journal_;
  std::string said_;

 private:
  static ResultFile header() {
    ResultFile file;
    file.created = "2026-01-01T00:00:00Z";
    file.inputs = {{std::string(kPlannedCheck), "links", "default"}};
    file.rounds = Rounds{};
    file.rows = std::vector<CheckRow>{};
    return file;
  }
};

TEST_F(Accepted, IsToldOfARunThatHasNotSaidIt) {
  EXPECT_EQ(tell(kKilled), kKilled);
  EXPECT_THAT(said_, HasSubstr("ERROR  job: It ended before its result was written: mpirun ended with exit"));
  EXPECT_THAT(read_file(junit()), HasSubstr("job"));
}

TEST_F(Accepted, NamesRank0WhereTheNextOneHas) {
  EXPECT_TRUE(add_to_journal(journal_.path(), "2026-01-01T00:00:00Z", row_of_dead_rank(0, "node0")));
  EXPECT_EQ(tell(kKilled), ExitCode::below_threshold);
  EXPECT_THAT(said_, HasSubstr("FAIL  ranks.alive, rank 0 on node0: Its process ended"));
  EXPECT_THAT(read_file(junit()), HasSubstr("ranks.alive"));
}

TEST_F(Accepted, IsNotToldTwice) {
  journal_.add_end(std::vector<CheckRow>{row_of_dead_rank(1, "node0")}, "rank 1 died");
  EXPECT_EQ(tell(kKilled), kKilled);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(junit()));
  // A launcher that lets ranks die may end with 0.
  EXPECT_EQ(tell(ExitCode::ok), ExitCode::below_threshold);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Accepted, OfARunThatCameToItsEndIsInItsResult) {
  journal_.remove();
  EXPECT_EQ(tell(ExitCode::ok), ExitCode::ok);
  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace polyring
