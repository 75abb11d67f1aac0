// What others measured: that the file is whole, and that what it says of machines it was not told of is true.
#include "bench/predict/published_rates.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "bench/predict/efficiency.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;

TEST(PublishedRates, EachHasAMachineAndASource) {
  const PublishedRates& published = published_rates();
  EXPECT_GT(published.rates.size(), 60u);
  EXPECT_GT(published.floors.size(), 10u);
  for (const PublishedRate& row : published.rates) {
    EXPECT_FALSE(row.source.where.empty()) << row.machine;
    EXPECT_FALSE(row.software.empty()) << row.machine;
    EXPECT_GT(row.ranks, 0) << row.machine;
    for (const auto& [size, busbw] : row.busbw) {
      EXPECT_GT(busbw.value, 0) << row.machine;
      EXPECT_LT(busbw.value, 1.03 * row.rate.value) << row.machine << ": more than its links carry";
    }
  }
  for (const PublishedFloor& floor : published.floors) {
    EXPECT_FALSE(floor.source.where.empty()) << floor.who;
    EXPECT_GT(floor.busbw.value, 0) << floor.who;
  }
}

std::string file_of(const std::string& row) {
  return R"({"sources": {"here": {"where": "a page", "date": "2026"}}, "floors": [], "rates": [)" + row +
         "]}";
}

std::string fault_of(const std::string& row) {
  try {
    parse_published_rates(file_of(row));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kRow =
    R"({{"machine": "one", "link": "NVLink 9", "implementation": "ring", "hosts": 1, "ranks": 8, "rate_GBps": 100,
        "software": "any", "busbw_GBps": {{"1GiB": {}}}, {}}})";

TEST(PublishedRates, AreReadWithTheirSource) {
  const PublishedRates read = parse_published_rates(file_of(fmt::format(kRow, 80, R"("source": "here")")));
  ASSERT_EQ(read.rates.size(), 1u);
  EXPECT_EQ(read.rates[0].source.where, "a page");
  EXPECT_DOUBLE_EQ(read.rates[0].busbw.at(Bytes{1u << 30}).gigabytes_per_second(), 80);
}

TEST(PublishedRates, WithoutASourceAreRefused) {
  EXPECT_THAT(fault_of(fmt::format(kRow, 80, R"("source": "elsewhere")")), HasSubstr("has no source"));
  EXPECT_THAT(fault_of(fmt::format(kRow, 80, R"("source": "here", "state": "good")")),
              HasSubstr("its state is healthy, stated or faulty"));
  EXPECT_THAT(fault_of("7"), HasSubstr("published rates"));
}

/// All but those of one machine.
PublishedRates without(const std::string& machine) {
  PublishedRates others = published_rates();
  std::erase_if(others.rates, [&](const PublishedRate& row) { return row.machine == machine; });
  return others;
}

bool tells_of_large_allreduces(const PublishedRate& row) {
  static const std::set<std::string> kKnown{"ring", "tree", "in-switch", "in-switch tree", "mpi"};
  return kKnown.contains(row.implementation) && (row.saturated || row.busbw.rbegin()->first >= kLargePayload);
}

/// The part of its rate that its largest payload reached, and what others than `left_out` say of it.
struct Held {
  double part;
  std::optional<Efficiency> expected;
};

Held held_out(const PublishedRate& row, const PublishedRates& others) {
  const auto& [size, busbw] = *row.busbw.rbegin();
  const RateQuestion question{row.link, row.implementation, std::max(size, kLargePayload), row.hosts,
                              row.ranks};
  return {busbw.value / row.rate.value, efficiency(question, others)};
}

TEST(Efficiency, OfMachinesLeftOutIsWhatTheyReached) {
  int within = 0;
  int narrow = 0;  // of them, in an interval that is from figures of the same link
  int all = 0;
  for (const PublishedRate& row : published_rates().rates) {
    if (row.state != PublishedState::healthy || !tells_of_large_allreduces(row)) continue;
    const Held held = held_out(row, without(row.machine));
    ASSERT_TRUE(held.expected);
    const Efficiency& expected = *held.expected;
    const bool inside = held.part >= expected.low && held.part <= expected.high;
    ++all;
    within += inside ? 1 : 0;
    narrow += inside && expected.from_data ? 1 : 0;
    fmt::print("{} {}: {}, {}: {:.3f} in {:.3f} to {:.3f}{}\n", inside ? "  " : "! ", row.machine, row.link,
               row.implementation, held.part, expected.low, expected.high,
               expected.from_data ? "" : " (wide)");
  }
  fmt::print("{} of {} held out lie within, {} of them in narrow intervals\n", within, all, narrow);
  EXPECT_GE(all, 12);
  EXPECT_GE(within, 0.8 * all);
  EXPECT_GE(narrow, 0.7 * within);
}

TEST(Efficiency, OfFaultyMachinesIsBelow) {
  int all = 0;
  for (const PublishedRate& row : published_rates().rates) {
    if (row.state != PublishedState::faulty) continue;
    const Held held = held_out(row, published_rates());
    ++all;
    EXPECT_LT(held.part, held.expected.value().low) << row.machine;
  }
  EXPECT_GE(all, 6);
}

TEST(Efficiency, FromDataIsNarrow) {
  std::set<std::string> seen;
  for (const PublishedRate& row : published_rates().rates) {
    if (row.state == PublishedState::faulty || !tells_of_large_allreduces(row)) continue;
    for (const Bytes size : {kLargePayload, Bytes{std::uint64_t{16} << 30}}) {
      const auto expected = efficiency({row.link, row.implementation, size, row.hosts, row.ranks});
      ASSERT_TRUE(expected && expected->from_data) << row.machine;
      EXPECT_LE(expected->low, expected->high);
      EXPECT_LE(expected->high, 1.25 * expected->low * (1 + 1e-9)) << expected->rests_on;
      EXPECT_LE(expected->high, 1.03) << expected->rests_on;
    }
  }
}

TEST(Efficiency, SaysWhatItRestsOn) {
  const auto of = [](const char* link, const char* implementation, std::uint64_t size) {
    return efficiency({link, implementation, Bytes{size}, 1, 8});
  };
  const std::uint64_t large = std::uint64_t{8} << 30;
  EXPECT_THAT(of("NVLink 4", "ring", large)->rests_on,
              testing::MatchesRegex("rings reach [0-9.]+ to [0-9.]+ % of the rate of NVLink 4 in [0-9]+ "
                                    "published figures of [0-9]+ machines, taken 3 % wider at each end"));
  EXPECT_THAT(of("NVLink 1", "ring", large)->rests_on,
              HasSubstr("no figure of rings over NVLink 1 is published; over other kinds of NVLink"));
  EXPECT_FALSE(of("NVLink 1", "ring", large)->from_data);
  EXPECT_EQ(of("carrier pigeons", "ring", large)->rests_on,
            "no figure of rings over carrier pigeons is published: half of the rate to all of it");
}

TEST(Efficiency, OfSmallPayloadsIsKnownWhereItWasMeasured) {
  const auto of = [](Bytes size, int ranks) { return efficiency({"NVLink 3", "ring", size, 1, ranks}); };
  const auto small = of(Bytes{16u << 20}, 8);
  ASSERT_TRUE(small);
  // 106 and 109 of 300 GB/s.
  EXPECT_LT(small->low, 106.0 / 300);
  EXPECT_GT(small->high, 109.0 / 300);
  EXPECT_LT(small->high, of(kLargePayload, 8)->low);
  EXPECT_FALSE(of(Bytes{16u << 20}, 4)) << "latency depends on the ranks";
  EXPECT_FALSE(of(Bytes{1u << 10}, 8)) << "nobody published it";
}

}  // namespace
}  // namespace polyring
