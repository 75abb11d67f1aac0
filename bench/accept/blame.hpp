// Whose fault it is when pairs are slow: a host's, that of a leaf switch's uplinks, or that of what joins two
// hosts.
#pragma once

#include <span>
#include <vector>

#include "bench/accept/pairing.hpp"

namespace polyring {

struct PairOutcome {
  HostPair pair;
  bool bad = false;
};

struct Suspects {
  /// More than two thirds of all pairs are bad, of three hosts or more: then no host stands out.
  bool everybody = false;
  std::vector<int> hosts;       // most of whose pairs are bad
  std::vector<int> leaves;      // most of whose pairs with other leaves are bad; of only two both
  std::vector<HostPair> links;  // bad pairs of hosts that are good otherwise
};

/// Hosts are suspected by turns, the one with the largest part of its pairs bad first; its pairs then say
/// nothing of others any more. A host is suspected for two bad pairs or more, and more than half of its
/// pairs. A single pair, of two hosts, is a link.
///
/// `leaves`: of each host; empty: all are under one. Hosts come first that are bad inside their leaf, too.
/// Then leaves are suspected by turns: for two bad pairs or more that leave them, more than two thirds of
/// those, and none inside; those that leave them then say nothing of hosts and links. Where all are of one
/// host it is the host that is suspected. The other hosts come last.
Suspects find_suspects(std::span<const PairOutcome> outcomes, std::span<const int> leaves = {});

/// Two good hosts, or as many as there are, that have not been a partner of `host` in bad pairs: with these a
/// suspect is measured again. `banned`: hosts that are suspected themselves.
std::vector<int> partners_for(int host, std::span<const PairOutcome> outcomes, std::span<const int> banned);

}  // namespace polyring
