// Rails of emulated hosts, and slow rails for which there is little time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/accept/checks/checks.hpp"
#include "bench/accept/expected_least.hpp"
#include "tests/bench/accept/fake_measurer.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::FakeMeasurer;
using ::testing::Field;
using testing::make_site;
using ::testing::Ne;
using testing::NothingGiven;
using testing::row;

std::vector<CheckRow> rails_of(
    const Site& site, Measurer& measurer,
    const std::function<bool(int)>& has_time = [](int) { return true; }) {
  const NothingGiven given;
  const ExpectedLeast expected = expected_least;
  const CheckOptions options;
  return kRails.run({measurer, site, given, expected, options, [](const std::string&) {}, has_time});
}

/// Hosts that reach each other over all interfaces.
HostReply reply_of(const std::string& interfaces, const std::string& question) {
  if (question.find("listen") != std::string::npos) return {"10.0.0.1:1"};
  if (question.find("connect") != std::string::npos) return {"[]"};
  return question.empty() || question == "speeds" ? HostReply{interfaces} : HostReply{};
}

/// Their interfaces are no devices.
TEST(EmulatedRails, WithoutACarrierOnAllHostsAreShown) {
  Site site = make_site({1, 1, 1});
  site.source = Source::emulated;
  FakeMeasurer measurer(site, 1);
  measurer.reply = [](int, const std::string&, const std::string& question) {
    return question == "no carrier" ? HostReply{R"({"eth1": 0})"} : reply_of(R"({"eth0": 0})", question);
  };
  std::vector<CheckRow> rows = rails_of(site, measurer);
  ASSERT_THAT(rows, ElementsAre(row("eth1", Verdict::shown), row("", Verdict::skipped)));
  EXPECT_EQ(rows[0].why, "It is down on all hosts.");
  site.source = Source::measured;
  EXPECT_THAT(rails_of(site, measurer), ElementsAre(Field(&CheckRow::verdict, Verdict::skipped)));
}

TEST(SlowRails, WhoseHostsThereIsNoTimeToFindSaySo) {
  const Site site = make_site({1, 1, 1});
  FakeMeasurer measurer(site, 1);
  measurer.reply = [](int, const std::string&, const std::string& question) {
    return reply_of(R"({"eth0": 100000, "eth1": 100000})", question);
  };
  measurer.rail_GBps[{"eth1", 2}] = 1;
  EXPECT_THAT(rails_of(site, measurer), ElementsAre(row("eth0", Verdict::pass), row("eth1", Verdict::fail),
                                                    row("eth1 of node2", Verdict::fail)));
  const std::vector<CheckRow> rows = rails_of(site, measurer, [](int turns) { return turns < 3; });
  ASSERT_THAT(rows, ElementsAre(row("eth0", Verdict::pass), row("eth1", Verdict::fail)));
  EXPECT_THAT(rows[1].why, EndsWith(" The budget had no time to find out on which hosts."));
}

/// Even where there is no time to find the hosts of a slow rail.
TEST(SlowRails, ThatAreSlowOnceAreRepeated) {
  const Site site = make_site({1, 1, 1});
  FakeMeasurer measurer(site, 1);
  measurer.rail_GBps[{"eth1", 2}] = 1;
  int measured = 0;
  measurer.reply = [&](int host, const std::string&, const std::string& question) {
    // Before and after each measurement.
    if (question == "sent" && host == 0 && ++measured == 4) measurer.rail_GBps.clear();
    return reply_of(R"({"eth0": 100000, "eth1": 100000})", question);
  };
  const std::vector<CheckRow> rows = rails_of(site, measurer, [](int turns) { return turns < 2; });
  EXPECT_GT(measured, 4);
  EXPECT_THAT(rows,
              ElementsAre(row("eth0", Verdict::pass), AllOf(Field(&CheckRow::subject, "eth1"),
                                                            Field(&CheckRow::verdict, Ne(Verdict::fail)))));
}

}  // namespace
}  // namespace polyring
