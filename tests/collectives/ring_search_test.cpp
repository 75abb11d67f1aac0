// The search for rings against trying everything, and against what is known of complete graphs.
#include "collectives/schedule/rings/ring_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "base/error.hpp"

namespace polyring {
namespace {

constexpr int kAny = 1000;
constexpr std::int64_t kSteps = 10'000'000;

std::vector<Cycle> all_cycles(int n) {
  std::vector<Cycle> cycles;
  Cycle cycle(static_cast<std::size_t>(n));
  std::iota(cycle.begin(), cycle.end(), 0);
  do {
    cycles.push_back(cycle);
  } while (std::next_permutation(cycle.begin() + 1, cycle.end()));
  return cycles;
}

template <typename Do>
void for_each_arc(const Cycle& cycle, Do act) {
  for (std::size_t i = 0; i < cycle.size(); ++i) act(cycle[i], cycle[(i + 1) % cycle.size()]);
}

/// Whether the arcs of a cycle had one unit more each.
bool take(PairMatrix& left, const Cycle& cycle) {
  bool fits = true;
  for_each_arc(cycle, [&](int from, int to) { fits = fits && left.at(from, to) > 0; });
  if (fits) for_each_arc(cycle, [&](int from, int to) { --left.at(from, to); });
  return fits;
}

/// Tries every set of cycles.
int most_by_trying(const PairMatrix& left, const std::vector<Cycle>& cycles, std::size_t first = 0) {
  int most = 0;
  for (std::size_t i = first; i < cycles.size(); ++i) {
    PairMatrix rest = left;
    if (take(rest, cycles[i])) most = std::max(most, 1 + most_by_trying(rest, cycles, i));
  }
  return most;
}

PairMatrix complete(int n, int units) {
  PairMatrix capacity(n);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) capacity.at(from, to) = from == to ? 0 : units;
  }
  return capacity;
}

void expect_fits(PairMatrix capacity, const std::vector<Cycle>& found) {
  for (const Cycle& ring : found) {
    EXPECT_EQ(ring.front(), 0);
    const std::set<int> vertices(ring.begin(), ring.end());
    EXPECT_EQ(vertices.size(), static_cast<std::size_t>(capacity.vertices()));
    EXPECT_EQ(ring.size(), vertices.size());
    EXPECT_TRUE(take(capacity, ring)) << ::testing::PrintToString(ring);
  }
}

TEST(PackRings, FindsAsManyAsTryingEverythingDoes) {
  std::mt19937 random(20261122);
  int several = 0;
  for (int graph = 0; graph < 300; ++graph) {
    const int n = 2 + graph % 4;
    PairMatrix capacity(n);
    const bool both_ways = graph % 3 != 0;
    for (int from = 0; from < n; ++from) {
      for (int to = both_ways ? from + 1 : 0; to < n; ++to) {
        if (from == to) continue;
        capacity.at(from, to) = static_cast<int>(random() % 3);
        if (both_ways) capacity.at(to, from) = capacity.at(from, to);
      }
    }
    const std::vector<Cycle> found = pack_rings(capacity, 1, kAny, kSteps);
    EXPECT_EQ(static_cast<int>(found.size()), most_by_trying(capacity, all_cycles(n))) << graph;
    expect_fits(capacity, found);
    several += found.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 50) << "too few of the graphs ask much";
}

TEST(PackRings, TakesCompleteGraphsApartWhereThatCanBe) {
  // All arcs of a complete graph fall into Hamiltonian cycles, except for 4 and 6 vertices: Tillson, "A
  // Hamiltonian decomposition of K*_2m, 2m >= 8", J. Combinatorial Theory B 29, 1980.
  for (const auto& [n, rings] : {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 4}, {6, 4}, {7, 6}, {8, 7}}) {
    const std::vector<Cycle> found = pack_rings(complete(n, 1), 1, kAny, kSteps);
    EXPECT_EQ(static_cast<int>(found.size()), rings) << n;
    expect_fits(complete(n, 1), found);
  }
}

TEST(PackRings, FillsCompleteGraphsOfDoubledArcs) {
  for (const auto& [n, rings] : {std::pair{4, 6}, {6, 10}}) {
    const std::vector<Cycle> found = pack_rings(complete(n, 2), 1, kAny, kSteps);
    EXPECT_EQ(static_cast<int>(found.size()), rings) << n;
    expect_fits(complete(n, 2), found);
  }
}

TEST(PackRings, StopsAtTheMostThatIsAskedForAndAtItsSteps) {
  EXPECT_EQ(pack_rings(complete(5, 3), 1, 7, kSteps).size(), 7u);
  const std::vector<Cycle> hasty = pack_rings(complete(8, 1), 1, kAny, 20);
  EXPECT_LT(hasty.size(), 7u);
  expect_fits(complete(8, 1), hasty);
  EXPECT_EQ(pack_rings(complete(8, 1), 1, kAny, 20), hasty);
  EXPECT_TRUE(pack_rings(complete(1, 1), 1, kAny, kSteps).empty());
  EXPECT_TRUE(pack_rings(complete(4, 0), 1, kAny, kSteps).empty());
}

TEST(PackRings, FindsNoFewerThanAskedFor) {
  EXPECT_EQ(pack_rings(complete(4, 1), 2, kAny, kSteps).size(), 2u);
  EXPECT_TRUE(pack_rings(complete(4, 1), 3, kAny, kSteps).empty());
  EXPECT_TRUE(pack_rings(complete(5, 3), 8, 7, kSteps).empty());
}

TEST(PackRings, OfSixteenVerticesComesToAnEnd) {
  PairMatrix torus(16);  // 4 x 4
  for (int vertex = 0; vertex < 16; ++vertex) {
    for (const int next : {vertex / 4 * 4 + (vertex + 1) % 4, (vertex + 4) % 16}) {
      torus.at(vertex, next) = 1;
      torus.at(next, vertex) = 1;
    }
  }
  const std::vector<Cycle> found = pack_rings(torus, 1, kAny, 2'000'000);
  expect_fits(torus, found);
  EXPECT_GE(found.size(), 2u);
}

int cost_of(const PairMatrix& cost, const Cycle& ring) {
  int sum = 0;
  for_each_arc(ring, [&](int from, int to) { sum += cost.at(from, to); });
  return sum;
}

TEST(CheapestRing, IsThatOfTryingAll) {
  std::mt19937 random(5);
  for (int graph = 0; graph < 100; ++graph) {
    const int n = 1 + graph % 7;
    PairMatrix cost(n);
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) cost.at(from, to) = static_cast<int>(random() % 10);
    }
    // The first of the cheapest, in the dictionary's order.
    const auto cycles = all_cycles(n);
    const auto best = std::min_element(cycles.begin(), cycles.end(), [&](const Cycle& a, const Cycle& b) {
      return cost_of(cost, a) < cost_of(cost, b);
    });
    EXPECT_EQ(cheapest_ring(cost), *best) << graph;
  }
  EXPECT_EQ(cheapest_ring(complete(16, 1)).size(), 16u);
}

TEST(RingSearch, OfTooManyVerticesIsRefused) {
  EXPECT_THROW(cheapest_ring(complete(kMostRingVertices + 1, 1)), Error);
  EXPECT_THROW(cheapest_ring(PairMatrix(0)), Error);
  EXPECT_THROW(pack_rings(complete(kMostRingVertices + 1, 1), 1, kAny, 1000), Error);
  EXPECT_THROW(pack_rings(complete(4, 1), 0, kAny, 1000), Error);
}

}  // namespace
}  // namespace polyring
