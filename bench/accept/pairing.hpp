// Who is paired with whom, so that all pairs of hosts are measured in few rounds.
#pragma once

#include <vector>

namespace polyring {

/// Two hosts, the lower first.
struct HostPair {
  int first = 0;
  int second = 0;
  auto operator<=>(const HostPair&) const = default;
};

/// Pairs that are measured at the same time: each host is in one of them at most.
using PairRound = std::vector<HostPair>;

/// Every pair of `hosts` in one of the rounds: hosts − 1 rounds of an even number of hosts, as in a
/// round-robin tournament (the circle method; Kirkman 1847), and one more of an odd number. Hosts are under
/// leaf switches of `per_leaf` each (0: under one): where leaves are full and of an even number of hosts,
/// pairs inside leaves come first, in rounds of their own.
std::vector<PairRound> all_pair_rounds(int hosts, int per_leaf);

/// At most `most` of these rounds: the first one, and others at equal distances, so that each host meets
/// hosts of its leaf and of others.
std::vector<PairRound> some_pair_rounds(int hosts, int per_leaf, int most);

}  // namespace polyring
