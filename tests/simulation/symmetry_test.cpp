// Classes on workloads of a few flows, in copies, so that there is something to save.
#include "simulation/symmetry.hpp"

#include <gtest/gtest.h>

#include "simulation/engine.hpp"
#include "tests/simulation/small_workload.hpp"

namespace polyring {
namespace {

using testing::add_round;
using testing::small_workload;

double seconds(const Workload& workload) { return run(workload, {})->seconds; }

/// All flows in one round.
void at_once(Workload& workload) {
  workload.rounds = {{0, static_cast<int>(workload.flows.size()), 1}};
  workload.courses = {{1, 0, 1}};
}

TEST(Classes, TellMessagesOfUnlikeLatencyApart) {
  constexpr int kPairs = 8;
  Workload pairs = small_workload(2 * kPairs, std::vector<double>(kPairs, 1));
  for (int pair = 0; pair < kPairs; ++pair)
    add_round(pairs, 2 * pair, 2 * pair + 1, pair, 10, pair, pair % 2 == 0 ? 1 : 2);
  at_once(pairs);
  const Workload classes = by_classes(pairs);
  EXPECT_EQ(classes.actors, 4);
  EXPECT_DOUBLE_EQ(seconds(classes), 12);
  EXPECT_DOUBLE_EQ(seconds(pairs), 12);
}

TEST(Classes, TellSendersToUnlikeReceiversApart) {
  // 0 → 1 → 2, and 3 → 4 → 5 with more from 4 on: so 0 and 3 send the same and are not equal.
  constexpr int kCopies = 3;
  Workload chains = small_workload(6 * kCopies, std::vector<double>(4 * kCopies, 1));
  const auto add_all = [&](int from, int resource, double bytes) {
    for (int copy = 0; copy < kCopies; ++copy) {
      const int at = 6 * copy + from;
      add_round(chains, at, at + 1, 4 * copy + resource, bytes, 4 * copy + resource);
    }
  };
  add_all(0, 0, 10);
  add_all(3, 1, 10);
  add_all(1, 2, 10);
  add_all(4, 3, 30);
  const int flows = static_cast<int>(chains.flows.size());
  chains.rounds = {{0, flows / 2, 1}, {flows / 2, flows, 1}};
  chains.courses = {{1, 0, 2}};
  const Workload classes = by_classes(chains);
  EXPECT_EQ(classes.actors, 6);
  EXPECT_DOUBLE_EQ(seconds(classes), 40);
  EXPECT_DOUBLE_EQ(seconds(chains), 40);
}

}  // namespace
}  // namespace polyring
