// What groups of hosts are compared with.
#include "bench/accept/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "base/statistics.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/expected_least.hpp"
#include "reports/verdicts.hpp"
#include "tests/bench/accept/fake_measurer.hpp"

namespace polyring {
namespace {

using Part = OfOthers::Part;
using testing::NothingGiven;

TEST(OfOthers, IsTheMedianOfAllButOne) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any(1, 9);  // so that some are equal
  for (std::size_t count = 1; count < 12; ++count) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(any(random));
    const OfOthers of_others(values);
    EXPECT_EQ(of_others.median(std::nullopt), summarize(values).median);
    for (std::size_t own = 0; own < count; ++own) {
      std::vector<double> others = values;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(own));
      if (others.empty()) {
        EXPECT_FALSE(of_others.median(values[own]));
        continue;
      }
      EXPECT_EQ(of_others.median(values[own]), summarize(others).median);
      std::ranges::sort(others, std::greater{});
      others.resize((others.size() + 1) / 2);
      EXPECT_EQ(of_others.median(values[own], Part::larger_half), summarize(others).median);
    }
  }
  EXPECT_FALSE(OfOthers({}).median(std::nullopt));
}

/// In minutes, were each pair compared with the samples of each other one.
TEST(PairsAllreduce, JudgesAThousandHosts) {
  Site site = testing::make_site(std::vector<int>(1024, 1));
  for (std::size_t host = 0; host < site.leaf.size(); ++host) site.leaf[host] = static_cast<int>(host) / 32;
  site.cluster.fabric.hosts_per_leaf = 32;
  testing::FakeMeasurer measurer(site, 1);
  measurer.host_link[700] = 5;
  const NothingGiven given;
  const ExpectedLeast expected = expected_least;
  const CheckOptions options;
  const std::vector<CheckRow> rows =
      kPairsAllreduce.run({measurer, site, given, expected, options, [](const std::string&) {}});
  EXPECT_EQ(rows.size(), 12 * 512 + 1);
  EXPECT_EQ(summary(rows), "FAIL: 1 of 6145 judgements failed: pairs.allreduce of node700.");
}

}  // namespace
}  // namespace polyring
