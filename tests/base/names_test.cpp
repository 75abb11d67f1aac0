#include "base/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace polyring {
namespace {

const std::vector<std::string> kNames{"multi-ring", "ring", "tree", "chain-tree", "bert-large", "osu"};

TEST(Names, AreKnownInAnyCase) {
  EXPECT_EQ(known_name("ring", kNames), "ring");
  EXPECT_EQ(known_name("Multi-RING", kNames), "multi-ring");
  EXPECT_EQ(known_name("multiring", kNames), std::nullopt);
  EXPECT_EQ(known_name("", kNames), std::nullopt);
  EXPECT_EQ(known_name("p100", std::array<std::string, 1>{"P100"}), "P100");
}

TEST(Names, TheNearestIsFound) {
  EXPECT_EQ(nearest_name("multiring", kNames), "multi-ring");    // one is missing
  EXPECT_EQ(nearest_name("rring", kNames), "ring");              // one too many
  EXPECT_EQ(nearest_name("rinf", kNames), "ring");               // another one
  EXPECT_EQ(nearest_name("rnig", kNames), "ring");               // two exchanged
  EXPECT_EQ(nearest_name("MULTI_RINGS", kNames), "multi-ring");  // two edits of eleven
  EXPECT_EQ(nearest_name("bert", kNames), "bert-large");         // the only one that begins so
  EXPECT_EQ(nearest_name("osu-benchmarks", kNames), "osu");
}

TEST(Names, NothingIsNearWhatIsFar) {
  EXPECT_EQ(nearest_name("none", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("xyz", kNames), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(10'000'000, 'r'), kNames), std::nullopt);
  EXPECT_EQ(nearest_name("a", std::array<std::string, 2>{"b", "c"}), std::nullopt);  // all is another
  EXPECT_EQ(nearest_name("ab", std::array<std::string, 2>{"abcde", "abxyz"}), std::nullopt);  // two begin so
}

/// Of two that are as near, the first.
TEST(Names, TheFewestEditsCount) {
  EXPECT_EQ(nearest_name("treee", kNames), "tree");
  EXPECT_EQ(nearest_name("abcx", std::array<std::string, 2>{"abxx", "abcy"}), "abxx");
  EXPECT_EQ(nearest_name("abcdef", std::array<std::string, 2>{"abcdxy", "abcdex"}), "abcdex");
}

TEST(Names, AnErrorHasTheNearestAndAll) {
  const std::array<std::string, 2> names{"ring", "tree"};
  EXPECT_EQ(unknown_name("algorithm", "rung", names),
            "unknown algorithm 'rung'; did you mean ring? choose from ring, tree");
  EXPECT_EQ(unknown_name("algorithm", "star", names), "unknown algorithm 'star'; choose from ring, tree");
}

}  // namespace
}  // namespace polyring
