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

}  // namespace
}  // namespace polyring
