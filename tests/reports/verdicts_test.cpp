// What checks come to, and what other programs read of it.
#include "reports/verdicts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/tables.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CheckRow row(const std::string& check, Verdict verdict, const std::string& subject = "") {
  CheckRow row;
  row.check = check;
  row.subject = subject;
  if (!subject.empty()) row.hosts = {subject};
  row.verdict = verdict;
  row.why = "Why: it is so.";
  return row;
}

std::vector<CheckRow> example() { return std::get<std::vector<CheckRow>>(examples::accept().rows); }

TEST(Overall, IsTheWorstAndNeverPassesByMistake) {
  using enum Verdict;
  const auto of = [](std::vector<Verdict> verdicts) {
    std::vector<CheckRow> rows;
    for (const Verdict verdict : verdicts) rows.push_back(row("links", verdict));
    return overall(rows);
  };
  EXPECT_EQ(of({}), missing);
  EXPECT_EQ(of({skipped, skipped}), missing);
  EXPECT_EQ(of({skipped, pass}), pass);
  EXPECT_EQ(of({pass, inconclusive}), inconclusive);
  EXPECT_EQ(of({missing, inconclusive}), missing);
  EXPECT_EQ(of({pass, error, inconclusive}), error);
  EXPECT_EQ(of({error, fail, pass}), fail);
}

TEST(ExitCodes, FailIs8ErrorIsTheChecksAndWhatIsNotKnownIs9) {
  const auto of = [](Verdict verdict) {
    const std::vector<CheckRow> rows{row("links", Verdict::pass), row("links", verdict)};
    return exit_code(rows, ExitCode::mpi);
  };
  EXPECT_EQ(of(Verdict::pass), ExitCode::ok);
  EXPECT_EQ(of(Verdict::skipped), ExitCode::ok);
  EXPECT_EQ(of(Verdict::fail), ExitCode::below_threshold);
  EXPECT_EQ(of(Verdict::error), ExitCode::mpi);
  EXPECT_EQ(of(Verdict::inconclusive), ExitCode::inconclusive);
  EXPECT_EQ(of(Verdict::missing), ExitCode::inconclusive);
  EXPECT_EQ(exit_code({}), ExitCode::inconclusive);
  // An error that nothing has thrown is one all the same.
  EXPECT_EQ(exit_code(std::vector{row("links", Verdict::error)}, ExitCode::ok), ExitCode::not_available);
}

TEST(Summary, NamesWhatFailedAndCountsTheOthers) {
  EXPECT_EQ(
      summary(example()),
      "FAIL: 2 of 12 judgements failed: links of node2; pairs.allreduce of node1 and node3. 1 more broke. "
      "1 more were inconclusive.");
  EXPECT_EQ(summary(std::vector{row("links", Verdict::pass, "a")}), "PASS: all 1 judgement passed.");
  EXPECT_EQ(summary({}), "MISSING: nothing was judged.");
  std::vector<CheckRow> many(9, row("links", Verdict::fail, "a"));
  EXPECT_THAT(summary(many), HasSubstr("; and 3 more."));
}

TEST(Summary, LeavesOutPairsOfAHostThatIsToBlameAndNothingElse) {
  std::vector<CheckRow> rows;
  for (const char* other : {"b", "c"}) {
    rows.push_back(row("pairs.allreduce", Verdict::fail, fmt::format("a and {}", other)));
    rows.back().hosts = {"a", other};
    rows.back().quantity = "busbw";
  }
  rows.push_back(row("pairs.allreduce", Verdict::fail, "a"));
  rows.push_back(row("hosts.alike", Verdict::fail, "a, b"));
  rows.back().hosts = {"a", "b"};
  rows.push_back(row("hosts.alike", Verdict::fail, "a"));
  EXPECT_EQ(summary(rows),
            "FAIL: 3 of 5 judgements failed: pairs.allreduce of a; hosts.alike of a, b; hosts.alike of a.");
}

TEST(Summary, LeavesOutPairsOfALeafWhoseUplinksAreToBlame) {
  std::vector<CheckRow> rows;
  for (const auto& [a, b] : {std::pair("a", "c"), {"b", "d"}, {"c", "d"}}) {
    rows.push_back(row("pairs.allreduce", Verdict::fail, fmt::format("{} and {}", a, b)));
    rows.back().hosts = {a, b};
    rows.back().quantity = "busbw";
  }
  rows.push_back(row("pairs.allreduce", Verdict::fail, "uplinks of the leaf of a and b"));
  rows.back().hosts = {"a", "b"};
  EXPECT_EQ(
      summary(rows),
      "FAIL: 2 of 4 judgements failed: pairs.allreduce of c and d; pairs.allreduce of uplinks of the leaf of "
      "a and b.");
  EXPECT_EQ(slurm_drain_list(rows), "");
}

TEST(Findings, SayWhyAndWhatToDoTheWorstFirst) {
  const std::vector<std::string> lines = findings(example());
  ASSERT_EQ(lines.size(), 5);
  EXPECT_EQ(lines[0],
            "FAIL  links, node2: Port mlx5_1 is down; the other hosts have 2 ports up. Check the cable of "
            "mlx5_1.");
  EXPECT_THAT(lines[2], HasSubstr("ERROR  nic.counters, node3"));
  EXPECT_EQ(lines[4], "skipped  data: No --data was given.");
}

TEST(Drain, TakesHostsAwayAndNotWhatIsBetweenThem) {
  std::vector<CheckRow> rows = example();
  rows.push_back(row("host.allreduce", Verdict::fail, "node2"));
  rows.push_back(row("host.allreduce", Verdict::error, "node0"));
  EXPECT_EQ(slurm_drain_list(rows),
            "scontrol update NodeName=node2 State=DRAIN Reason=\"polyring: links, host.allreduce\"\n");
}

TEST(Nagios, HasItsCodesAndOneLine) {
  EXPECT_EQ(nagios_status(std::vector{row("links", Verdict::pass)}).code, 0);
  EXPECT_EQ(nagios_status(example()).code, 2);
  EXPECT_EQ(nagios_status(std::vector{row("links", Verdict::missing)}).code, 3);
  EXPECT_EQ(nagios_status(std::vector{row("links", Verdict::error)}).code, 3);
  const NagiosStatus status = nagios_status(example());
  EXPECT_THAT(status.line, HasSubstr("POLYRING CRITICAL - FAIL"));
  EXPECT_THAT(status.line, HasSubstr(" | passed=8 failed=2 errors=1 inconclusive=1 missing=0"));
  EXPECT_THAT(status.line, Not(HasSubstr("\n")));
}

TEST(JUnit, HasACaseForEachRow) {
  std::vector<CheckRow> rows = example();
  rows.front().subject = "<&\"\x1b";
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(junit_xml(rows).c_str()));
  const pugi::xml_node suites = document.child("testsuites");
  EXPECT_EQ(suites.select_nodes("testsuite").size(), 5);
  EXPECT_EQ(suites.select_nodes("testsuite/testcase").size(), rows.size());
  EXPECT_EQ(suites.select_nodes("//failure").size(), 2);
  EXPECT_EQ(suites.select_nodes("//error").size(), 2);
  EXPECT_EQ(suites.select_nodes("//skipped").size(), 1);
  const pugi::xml_node pairs = suites.find_child_by_attribute("testsuite", "name", "pairs.allreduce");
  EXPECT_EQ(pairs.attribute("tests").as_int(), 6);
  EXPECT_EQ(pairs.attribute("failures").as_int(), 1);
  EXPECT_STREQ(suites.select_node("//testcase").node().attribute("name").value(), "<&\"␛");
}

TEST(Prometheus, HasGaugesWhoseLabelsAreQuoted) {
  std::vector<CheckRow> rows = example();
  rows.front().subject = "a\"b\\c\n";
  const std::string text = prometheus_text(rows, "2026-01-01T00:00:00Z");
  EXPECT_THAT(text, HasSubstr("polyring_accept_verdict{verdict=\"fail\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("polyring_accept_verdict{verdict=\"pass\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("polyring_accept_pass{check=\"links\",subject=\"a\\\"b\\\\c␊\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("polyring_accept_pass{check=\"pairs.allreduce\",subject=\"node1 and node3\","
                              "size_bytes=\"67108864\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("polyring_accept_least{quantity=\"busbw\",unit=\"GB/s\",check="));
  EXPECT_THAT(text, Not(HasSubstr("data")));  // what was skipped
  // A collector refuses a series that comes twice.
  const std::string twice =
      prometheus_text(std::vector{row("links", Verdict::fail, "a"), row("links", Verdict::pass, "a")},
                      "2026-01-01T00:00:00Z");
  const std::string series = "polyring_accept_pass{check=\"links\",subject=\"a\"}";
  EXPECT_EQ(twice.find(series), twice.rfind(series));
  EXPECT_THAT(twice, HasSubstr(series + " 0\n"));
}

TEST(CheckTable, HasALineForEachCheck) {
  const std::string text = check_table(example()).text();
  EXPECT_THAT(text, HasSubstr("pairs.allreduce"));
  EXPECT_THAT(text, HasSubstr("5 of 6"));
  EXPECT_THAT(text, HasSubstr("FAIL"));
  EXPECT_EQ(check_table(example()).size(), 5);
  EXPECT_EQ(judgement_table(example()).size(), example().size());
}

}  // namespace
}  // namespace polyring
