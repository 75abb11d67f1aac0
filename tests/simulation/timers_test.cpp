#include "simulation/timers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace polyring {
namespace {

TEST(Timers, NextIsTheEarliestWhateverIsSetAnew) {
  constexpr int kNumber = 60;
  std::mt19937 random(11);
  const auto up_to = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  Timers timers(kNumber);
  std::map<int, double> set;
  for (int change = 0; change < 20'000; ++change) {
    // More come than go for a while, then more go than come.
    if (up_to(99) < (change / 2'000 % 2 == 0 ? 60 : 30)) {
      const int id = up_to(kNumber - 1);
      set[id] = up_to(500);  // some come together
      timers.set(id, set[id]);
    } else if (!set.empty()) {
      const auto sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
      const double earliest = std::min_element(set.begin(), set.end(), sooner)->second;
      ASSERT_EQ(timers.next(), earliest) << change;
      const int id = timers.pop();
      ASSERT_TRUE(set.contains(id)) << change;
      EXPECT_EQ(set.at(id), earliest) << change;
      set.erase(id);
    }
    ASSERT_EQ(timers.empty(), set.empty()) << change;
    for (const auto& [id, time] : set) ASSERT_EQ(timers.time(id), time) << change;
  }
}

}  // namespace
}  // namespace polyring
