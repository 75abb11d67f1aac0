// Thresholds of an earlier result, and which results are none.
#include "bench/accept/baseline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/accept/fake_measurer.hpp"
#include "tests/models/refusal.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using testing::make_site;
using ::testing::StartsWith;

const Quantity kBusbw{"busbw", "GB/s"};
const Quantity kRatio{"slowest/fastest", "", true};

CheckRow row(const std::string& subject, double value, std::uint64_t size = 1024) {
  CheckRow row;
  row.check = "pairs.allreduce";
  row.subject = subject;
  row.verdict = Verdict::pass;
  row.quantity = kBusbw.name;
  row.unit = kBusbw.unit;
  row.value = exact_timing(value);
  row.least = 1;
  row.size_bytes = size;
  return row;
}

Inventory hosts(const std::vector<int>& ranks, double link_GBps = 10) {
  std::vector<Inventory> parts;
  const Site site = make_site(ranks, link_GBps);
  for (const HostGroup& group : site.cluster.groups) parts.push_back(inventory_of(group.machine));
  return merged(std::move(parts));
}

ResultFile result(const std::vector<int>& ranks = {2, 2}, double link_GBps = 10) {
  ResultFile file;
  file.polyring_version = "1.0.0";
  file.versions = {{"mpi", "Open MPI 4.1.4"}, {"compiler", "GNU 12"}};
  file.inputs = {{"algorithm", "multi-ring", "--algorithm"}, {"transport", "auto", "--transport"}};
  for (std::size_t host = 0; host < ranks.size(); ++host)
    for (int rank = 0; rank < ranks[host]; ++rank)
      file.placement.push_back({static_cast<int>(file.placement.size()), fmt::format("node{}", host)});
  file.machine = probe_json(hosts(ranks, link_GBps));
  file.rows = std::vector{row("node0 and node1", 10), row("node0 and node2", 20), row("node1 and node2", 12),
                          row("node1 and node2", 100, 2048)};
  return file;
}

std::vector<CheckRow>& rows(ResultFile& file) { return std::get<std::vector<CheckRow>>(file.rows); }

TEST(Baseline, KnowsItsPayloadWhereThereIsOne) {
  ResultFile file = result();
  EXPECT_FALSE(Baseline(file, "a.json", 0.1).size_of("pairs.allreduce")) << "of two sizes";
  rows(file).pop_back();
  EXPECT_EQ(Baseline(file, "a.json", 0.1).size_of("pairs.allreduce")->value, 1024);
  EXPECT_FALSE(Baseline(file, "a.json", 0.1).size_of("host.allreduce"));
  EXPECT_FALSE(Baseline().size_of("pairs.allreduce"));
}

std::optional<Threshold> of(const ResultFile& file, const std::string& subject, std::uint64_t size = 1024,
                            const Quantity& quantity = kBusbw) {
  return Baseline(file, "a.json", 0.1).of({"pairs.allreduce", quantity, size, subject});
}

TEST(Baseline, IsOfTheSameSubjectOrElseOfTheMedian) {
  EXPECT_DOUBLE_EQ(*of(result(), "node0 and node2")->least, 18);
  EXPECT_FALSE(of(result(), "node0 and node2")->most);
  EXPECT_EQ(of(result(), "node0 and node2")->source, "baseline a.json");
  EXPECT_DOUBLE_EQ(*of(result(), "other0 and other1")->least, 0.9 * 12);
  EXPECT_DOUBLE_EQ(*of(result(), "node0 and node1", 2048)->least, 90);
  EXPECT_FALSE(of(result(), "node0 and node1", 4096));
  EXPECT_FALSE(of(result(), "node0 and node1", 1024, kRatio));
  EXPECT_FALSE(Baseline().of({"pairs.allreduce", kBusbw, 1024, "node0 and node1"}));
}

TEST(Baseline, OfNothingSaysNothing) {
  ResultFile file = result();
  rows(file)[0].value = exact_timing(0);
  EXPECT_FALSE(of(file, "node0 and node1"));
}

TEST(Baseline, KnowsWhichWayIsWorse) {
  ResultFile file = result();
  rows(file)[0].least.reset();
  EXPECT_DOUBLE_EQ(*of(file, "node0 and node1")->least, 9);
  rows(file)[0].most = 5;
  EXPECT_FALSE(of(file, "node0 and node1")->least);
  EXPECT_DOUBLE_EQ(*of(file, "node0 and node1")->most, 11);
  rows(file)[0].most.reset();
  rows(file)[0].quantity = kRatio.name;
  EXPECT_FALSE(of(file, "node0 and node1", 1024, kRatio)->least);
  EXPECT_DOUBLE_EQ(*of(file, "node0 and node1", 1024, kRatio)->most, 11);
}

TEST(Baseline, IsNoneOfARunThatWasBad) {
  EXPECT_EQ(why_no_baseline(result()), "");
  ResultFile file = result();
  // It is to be a first baseline that says what this must be.
  rows(file)[0].verdict = Verdict::missing;
  EXPECT_EQ(why_no_baseline(file), "");
  rows(file)[0].value.reset();
  EXPECT_EQ(why_no_baseline(file), "not all of it passed: pairs.allreduce of node0 and node1 is 'missing'");
  for (const Verdict verdict : {Verdict::fail, Verdict::error, Verdict::inconclusive}) {
    rows(file)[0].verdict = verdict;
    EXPECT_THAT(why_no_baseline(file), HasSubstr(to_text(verdict)));
  }
  rows(file)[0].verdict = Verdict::skipped;
  EXPECT_EQ(why_no_baseline(file), "");
  for (CheckRow& one : rows(file)) one.value.reset();
  EXPECT_EQ(why_no_baseline(file), "none of its checks has measured anything");
  file = result();
  file.partial = "3 of 4 measurements";
  EXPECT_EQ(why_no_baseline(file), "it came to no end (3 of 4 measurements)");
}

std::string difference(const ResultFile& now, const Inventory& there) {
  return difference_from(result(), "a.json", now, there);
}

TEST(Baseline, FitsTheSameMachineOfOtherNames) {
  ResultFile now = result();
  for (RankHost& place : now.placement) place.host = "other" + place.host;
  now.versions["compiler"] = "clang";
  Inventory there = hosts({2, 2});
  for (auto& members : there.members)
    for (HostIdentity& host : members) host.name = "other" + host.name;
  EXPECT_EQ(difference(now, there), "");
}

TEST(Baseline, DoesNotFitWhatDiffers) {
  const Inventory same = hosts({2, 2});
  EXPECT_EQ(difference(result({2, 1}), same),
            "its size is 4 ranks on 2 hosts, and here it is 3 ranks on 2 hosts, 1 to 2 on each");
  EXPECT_EQ(difference(result({4}), same),
            "its size is 4 ranks on 2 hosts, and here it is 4 ranks on 1 host");
  EXPECT_EQ(difference(result(), hosts({2, 2}, 20)),
            "it is of another machine: on node0 and node1 eth0 runs at 20.0 GB/s, not 10.0 GB/s");
  Inventory mixed = merged({hosts({2}), hosts({2}, 20)});
  EXPECT_THAT(difference(result(), mixed), StartsWith("it is of another machine: "));
  ResultFile before = result({2, 2, 2});
  before.machine = probe_json(merged({hosts({2, 2}), hosts({2}, 20)}));
  mixed = merged({hosts({2}, 20), hosts({2}), hosts({2}, 20)});
  EXPECT_EQ(difference_from(before, "a.json", result({2, 2, 2}), mixed),
            "it has other numbers of hosts of each kind");
  mixed = merged({hosts({2}, 20), hosts({2, 2})});
  EXPECT_EQ(difference_from(before, "a.json", result({2, 2, 2}), mixed), "");
  Inventory unprobed = hosts({2});
  unprobed.unprobed.push_back({"node1", "it crashed"});
  EXPECT_THAT(difference(result(), unprobed), StartsWith("node1 could not be probed"));
  ResultFile now = result();
  now.polyring_version = "2.0.0";
  EXPECT_EQ(difference(now, same), "its polyring is 1.0.0, and here it is 2.0.0");
  now = result();
  now.versions.erase("mpi");
  EXPECT_EQ(difference(now, same), "its mpi is Open MPI 4.1.4, and here it is none");
  now = result();
  now.versions["nccl"] = "2.20";
  EXPECT_EQ(difference(now, same), "its nccl is none, and here it is 2.20");
  now = result();
  now.inputs[0].value = "ring";
  EXPECT_EQ(difference(now, same), "its algorithm is multi-ring, and here it is ring");
}

ResultFile under(const std::vector<LeafHosts>& leaves) {
  ResultFile file = result({1, 1, 1, 1});
  file.leaves = leaves;
  return file;
}

TEST(Baseline, IsOfTheSameLeaves) {
  const Inventory same = hosts({1, 1, 1, 1});
  const auto difference = [&](const ResultFile& before, const ResultFile& now) {
    return difference_from(before, "a.json", now, same);
  };
  const ResultFile before = under({{"leaf0", {"node0", "node1"}}, {"leaf1", {"node2", "node3"}}});
  EXPECT_EQ(difference(before, before), "");
  EXPECT_EQ(difference(before, under({{"b", {"node3", "node2"}}, {"", {"node1", "node0"}}})), "");
  EXPECT_EQ(difference(before, under({{"leaf0", {"node0", "node2"}}, {"leaf1", {"node1", "node3"}}})),
            "its node1 is under a leaf switch with other hosts than here");
  EXPECT_EQ(difference(before, under({{"leaf0", {"node0"}}, {"leaf1", {"node1", "node2", "node3"}}})),
            "its leaf switches are 2 of 2 hosts, and here they are 1 of 3 hosts and 1 of 1");
  EXPECT_EQ(difference(before, result({1, 1, 1, 1})),
            "its leaf switches are 2 of 2 hosts, and here they are 1 of 4 hosts");
  // Of other hosts it is enough that as many pairs are under one leaf.
  ResultFile others = under({{"leaf0", {"node0", "x"}}, {"leaf1", {"node1", "node2"}}});
  others.placement[3].host = "x";
  EXPECT_EQ(difference(before, others), "");
  Inventory racks = same;
  racks.cluster.fabric.hosts_per_leaf = 2;
  EXPECT_EQ(difference_from(before, "a.json", result({1, 1, 1, 1}), racks), "");
}

TEST(Baseline, ThatDoesNotFitIsRefused) {
  const Baseline baseline(result(), "a.json", 0.1);
  baseline.check_comparable(result(), hosts({2, 2}));
  EXPECT_EQ(refusal([&] { baseline.check_comparable(result({4}), hosts({4})); }),
            "baseline 'a.json' does not fit: its size is 4 ranks on 2 hosts, and here it is 4 ranks on 1 "
            "host; take a "
            "new one with --save-baseline");
  ResultFile nowhere = result();
  nowhere.machine = "null";
  EXPECT_THAT(refusal([&] {
                Baseline(nowhere, "a.json", 0).check_comparable(result(), hosts({2, 2}));
              }),
              HasSubstr("does not say which machine it was taken on"));
  Baseline().check_comparable(result({4}), hosts({4}));
}

TEST(Tolerance, IsAPart) {
  EXPECT_DOUBLE_EQ(parse_tolerance("10%"), 0.1);
  EXPECT_DOUBLE_EQ(parse_tolerance("0.25"), 0.25);
  EXPECT_EQ(parse_tolerance("0"), 0);
  for (const char* text : {"", "100%", "1", "-1%", "nan", "inf", "10 %", "10%x", "1e-3", "%"})
    EXPECT_THAT(refusal([&] { parse_tolerance(text); }), HasSubstr("write it as 10% or 0.1")) << text;
}

}  // namespace
}  // namespace polyring
