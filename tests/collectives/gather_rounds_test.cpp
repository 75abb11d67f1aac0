// Gathers of more bytes than an int counts, in rounds that one counts.
#include "collectives/runtime/mpi/gather_rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GatherRounds, AreOneWhereThatIsEnough) {
  const std::vector<std::int64_t> sizes{3, 0, 7};
  const auto rounds = gather_rounds(sizes, Bytes{10});
  ASSERT_EQ(rounds.size(), 1u);
  EXPECT_THAT(rounds[0].counts, ElementsAre(3, 0, 7));
  EXPECT_THAT(rounds[0].begins, ElementsAre(0, 3, 3));
  EXPECT_EQ(rounds[0].total(), 10u);
}

TEST(GatherRounds, AreNoneForNoBytes) {
  EXPECT_THAT(gather_rounds(std::vector<std::int64_t>{0, 0}, Bytes{10}), IsEmpty());
}

TEST(GatherRounds, TakeOneByteOfEachWhereRanksAreMore) {
  const auto rounds = gather_rounds(std::vector<std::int64_t>{2, 1, 2}, Bytes{2});
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_THAT(rounds[1].counts, ElementsAre(1, 0, 1));
  EXPECT_THAT(rounds[1].begins, ElementsAre(0, 1, 1));
}

/// Each rank has as many bytes as an int counts.
TEST(GatherRounds, AddUpToMoreThanAnIntCounts) {
  const std::int64_t most = std::numeric_limits<int>::max();
  const std::vector<std::int64_t> sizes{most, most + 5, 1, 3 * most};
  std::vector<std::int64_t> gathered(sizes.size());
  for (const GatherRound& round : gather_rounds(sizes, Bytes{256 << 20})) {
    EXPECT_LE(round.total(), std::size_t{256 << 20});
    int begin = 0;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      EXPECT_EQ(round.begins[rank], begin);
      begin += round.counts[rank];
      const bool takes_part = round.counts[rank] > 0;
      EXPECT_TRUE(!takes_part || static_cast<std::int64_t>(round.offset) == gathered[rank]);
      gathered[rank] += round.counts[rank];
    }
  }
  EXPECT_EQ(gathered, sizes);
}

}  // namespace
}  // namespace polyring
