#include "base/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Split, GivesTheParts) {
  EXPECT_THAT(split("", ','), IsEmpty());
  EXPECT_THAT(split("a", ','), ElementsAre("a"));
  EXPECT_THAT(split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(split(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

TEST(IfAny, IsNothingForAnEmptyText) {
  EXPECT_EQ(if_any(""), std::nullopt);
  EXPECT_EQ(if_any("a"), "a");
}

TEST(Counted, HasThePluralWhereThereAreNotOne) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "host"), "2 hosts");
}

TEST(ByteOrderMark, IsLeftOut) {
  EXPECT_EQ(without_byte_order_mark("\xef\xbb\xbf{}"), "{}");
  EXPECT_EQ(without_byte_order_mark("{}"), "{}");
  EXPECT_EQ(without_byte_order_mark("\xef\xbb"), "\xef\xbb");
}

}  // namespace
}  // namespace polyring
