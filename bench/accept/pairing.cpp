#include "bench/accept/pairing.hpp"

#include <algorithm>
#include <cassert>

namespace polyring {
namespace {

HostPair pair_of(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

/// The last one stands still, and the others walk around it. With an odd number one has a rest in each round.
std::vector<PairRound> circle(int players) {
  const int even = players + players % 2;
  std::vector<PairRound> rounds;
  for (int round = 0; round < even - 1; ++round) {
    PairRound pairs;
    const auto add = [&](int a, int b) {
      if (a < players && b < players) pairs.push_back(pair_of(a, b));
    };
    add(round, even - 1);
    for (int step = 1; step < even / 2; ++step)
      add((round + step) % (even - 1), (round - step + even - 1) % (even - 1));
    if (!pairs.empty()) rounds.push_back(std::move(pairs));
  }
  return rounds;
}

/// The pairs inside all leaves at once, then for each pair of leaves each host with each of the other's.
std::vector<PairRound> by_leaf(int leaves, int per_leaf) {
  std::vector<PairRound> rounds;
  for (const PairRound& inside : circle(per_leaf)) {
    PairRound& round = rounds.emplace_back();
    for (int leaf = 0; leaf < leaves; ++leaf) {
      for (const HostPair& pair : inside)
        round.push_back({leaf * per_leaf + pair.first, leaf * per_leaf + pair.second});
    }
  }
  for (const PairRound& pairs_of_leaves : circle(leaves)) {
    for (int shift = 0; shift < per_leaf; ++shift) {
      PairRound& round = rounds.emplace_back();
      for (const HostPair& pair : pairs_of_leaves) {
        for (int host = 0; host < per_leaf; ++host)
          round.push_back({pair.first * per_leaf + host, pair.second * per_leaf + (host + shift) % per_leaf});
      }
    }
  }
  return rounds;
}

}  // namespace

std::vector<PairRound> all_pair_rounds(int hosts, int per_leaf) {
  assert(hosts > 0 && per_leaf >= 0);
  const bool full_leaves = per_leaf > 1 && per_leaf % 2 == 0 && hosts % per_leaf == 0;
  return full_leaves ? by_leaf(hosts / per_leaf, per_leaf) : circle(hosts);
}

std::vector<PairRound> some_pair_rounds(int hosts, int per_leaf, int most) {
  assert(most > 0);
  const std::vector<PairRound> all = all_pair_rounds(hosts, per_leaf);
  const auto rounds = static_cast<int>(all.size());
  if (rounds <= most) return all;
  std::vector<PairRound> some;
  for (int i = 0; i < most; ++i) some.push_back(all[static_cast<std::size_t>(i * rounds / most)]);
  return some;
}

}  // namespace polyring
