// What an allreduce must reach where nobody gave a threshold, and what that allows for.
#include "bench/accept/expected_least.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/predict/published_rates.hpp"
#include "tests/bench/accept/fake_measurer.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bytes kLarge{std::uint64_t{1} << 30};

/// How much more a step of a ring took than its bytes at the rate of a large payload.
Seconds latency_of_step(Bytes size, int ranks, Bandwidth busbw, Bandwidth of_large) {
  const double of_rank = static_cast<double>(size.value) / ranks;
  return {of_rank / busbw.value - of_rank / of_large.value};
}

TEST(ExpectedLeast, AllowsForWhatIsPublishedOfSmallPayloads) {
  Seconds slowest;
  int figures = 0;
  for (const PublishedRate& rate : published_rates().rates) {
    const auto large = rate.busbw.find(kLarge);
    if (rate.state != PublishedState::healthy || large == rate.busbw.end()) continue;
    for (const auto& [size, busbw] : rate.busbw) {
      if (!(size < kLarge)) continue;
      ++figures;
      EXPECT_GT(busbw.value / large->second.value, part_of_small(size, rate.ranks, large->second))
          << rate.machine << ", " << size.value;
      slowest = std::max(slowest, latency_of_step(size, rate.ranks, busbw, large->second));
    }
  }
  EXPECT_GT(figures, 40);
  // As the header says.
  EXPECT_NEAR(slowest.value, 26.4e-6, 0.1e-6);
  EXPECT_NEAR(kLatencyOfStep.value / slowest.value, 2, 0.2);
}

TEST(ExpectedLeast, OfASmallPayloadSaysThatItIsOurChoice) {
  const Site site = testing::make_site({1, 1, 1, 1});
  const auto large = expected_least(site.cluster, "multi-ring", kLarge);
  const Bytes size{16 << 20};
  const auto small = expected_least(site.cluster, "multi-ring", size);
  ASSERT_TRUE(large && small);
  const double part = part_of_small(size, 4, gigabytes_per_second(*large->least));
  EXPECT_NEAR(*small->least, part * *large->least, 1e-9 * *large->least);
  EXPECT_THAT(large->source, Not(HasSubstr("choice")));
  EXPECT_THAT(
      small->source,
      HasSubstr(
          "% of the low end of what is expected, since no figures are published for such a payload and we "
          "allow 20 % less and 50 us more a step: "));
}

}  // namespace
}  // namespace polyring
