#include "bench/session/remaining.hpp"

#include <gtest/gtest.h>

namespace polyring {
namespace {

TEST(Remaining, IsTheTimeThatTheWeightsOfTheStepsTell) {
  const Remaining remaining({1, 1, 2, 4});
  EXPECT_FALSE(remaining.after(0, Seconds{100})) << "nothing to go by";
  EXPECT_FALSE(remaining.after(1, Seconds{0.5})) << "too little to go by";
  EXPECT_DOUBLE_EQ(remaining.after(1, Seconds{10})->value, 70);
  EXPECT_DOUBLE_EQ(remaining.after(3, Seconds{8})->value, 8);
  EXPECT_DOUBLE_EQ(remaining.after(4, Seconds{8})->value, 0);
}

TEST(Remaining, IsSaidInRoundFigures) {
  EXPECT_EQ(rough_text(Seconds{0.2}), "1 s");
  EXPECT_EQ(rough_text(Seconds{119}), "119 s");
  EXPECT_EQ(rough_text(Seconds{121}), "3 min");
  EXPECT_EQ(rough_text(Seconds{7201}), "3 h");
}

}  // namespace
}  // namespace polyring
