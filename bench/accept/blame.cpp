#include "bench/accept/blame.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/index.hpp"

namespace polyring {
namespace {

struct Count {
  int bad = 0;
  int all = 0;

  void add(bool is_bad) {
    ++all;
    bad += is_bad ? 1 : 0;
  }
  bool most_are_bad() const { return 2 * bad > all; }
};

/// By the part that is bad.
std::weak_ordering operator<=>(const Count& a, const Count& b) { return a.bad * b.all <=> b.bad * a.all; }

bool has(const HostPair& pair, int host) { return pair.first == host || pair.second == host; }

/// What is counted for or against a leaf.
struct LeafCount {
  Count leaving;
  std::set<int> hosts;  // with bad pairs that leave it
  bool bad_inside = false;
};

class Blame {
 public:
  Blame(std::span<const PairOutcome> outcomes, std::span<const int> leaves)
      : left_(outcomes.begin(), outcomes.end()), leaves_(leaves) {
    for (const PairOutcome& one : left_)
      for (const int host : {one.pair.first, one.pair.second}) all_leaves_.insert(leaf(host));
  }

  Suspects run() {
    suspect_hosts(true);
    suspect_leaves();
    suspect_hosts(false);
    for (const auto& [pair, bad] : left_)
      if (bad) suspects_.links.push_back(pair);
    std::ranges::sort(suspects_.hosts);
    std::ranges::sort(suspects_.leaves);
    return std::move(suspects_);
  }

 private:
  int leaf(int host) const { return leaves_.empty() ? 0 : leaves_[index(host)]; }
  bool is_inside(const HostPair& pair) const { return leaf(pair.first) == leaf(pair.second); }

  void suspect(int host) {
    suspects_.hosts.push_back(host);
    std::erase_if(left_, [&](const PairOutcome& one) { return has(one.pair, host); });
  }

  void suspect_hosts(bool bad_inside) {
    for (int host = worst_host(bad_inside); host >= 0; host = worst_host(bad_inside)) suspect(host);
  }

  /// The host that most of what is left speaks against, with `bad_inside` also inside its leaf; none: −1.
  int worst_host(bool bad_inside) const {
    std::map<int, Count> counts;
    std::map<int, Count> inside;
    for (const auto& [pair, bad] : left_) {
      for (const int host : {pair.first, pair.second}) {
        counts[host].add(bad);
        if (is_inside(pair)) inside[host].add(bad);
      }
    }
    int worst = -1;
    for (const auto& [host, count] : counts) {
      if (count.bad < 2 || !count.most_are_bad() || (bad_inside && !inside[host].most_are_bad())) continue;
      if (worst < 0 || count > counts[worst]) worst = host;
    }
    return worst;
  }

  void suspect_leaves() {
    while (const std::optional<int> worst = worst_leaf()) {
      const std::set<int> hosts = counts_of_leaves().at(*worst).hosts;
      if (hosts.size() == 1) {
        suspect(*hosts.begin());
        continue;
      }
      suspects_.leaves.push_back(*worst);
      std::erase_if(left_, [&](const PairOutcome& one) {
        return !is_inside(one.pair) && (leaf(one.pair.first) == *worst || leaf(one.pair.second) == *worst);
      });
    }
    // Of two, the same pairs leave both.
    if (all_leaves_.size() == 2 && !suspects_.leaves.empty())
      suspects_.leaves.assign(all_leaves_.begin(), all_leaves_.end());
  }

  std::map<int, LeafCount> counts_of_leaves() const {
    std::map<int, LeafCount> counts;
    for (const auto& [pair, bad] : left_) {
      for (const int host : {pair.first, pair.second}) {
        LeafCount& count = counts[leaf(host)];
        if (is_inside(pair)) {
          count.bad_inside |= bad;
        } else {
          count.leaving.add(bad);
          if (bad) count.hosts.insert(host);
        }
      }
    }
    return counts;
  }

  /// The leaf that most of what leaves it speaks against, and nothing inside it; of two that are as bad, the
  /// one with fewer hosts: all pairs of one bad host are bad for the other leaf, too.
  std::optional<int> worst_leaf() const {
    const std::map<int, LeafCount> counts = counts_of_leaves();
    std::optional<int> worst;
    for (const auto& [number, count] : counts) {
      const auto& [leaving, hosts, bad_inside] = count;
      if (bad_inside || leaving.bad < 2 || 3 * leaving.bad <= 2 * leaving.all) continue;
      if (worst) {
        const LeafCount& least = counts.at(*worst);
        if (leaving < least.leaving) continue;
        if (std::is_eq(leaving <=> least.leaving) && hosts.size() >= least.hosts.size()) continue;
      }
      worst = number;
    }
    return worst;
  }

  std::vector<PairOutcome> left_;  // that no suspect explains
  std::span<const int> leaves_;
  std::set<int> all_leaves_;
  Suspects suspects_;
};

}  // namespace

Suspects find_suspects(std::span<const PairOutcome> outcomes, std::span<const int> leaves) {
  const auto bad = std::ranges::count_if(outcomes, [](const PairOutcome& one) { return one.bad; });
  if (outcomes.size() > 1 && 3 * bad > 2 * static_cast<std::ptrdiff_t>(outcomes.size())) {
    Suspects everybody;
    everybody.everybody = true;
    return everybody;
  }
  return Blame(outcomes, leaves).run();
}

std::vector<int> partners_for(int host, std::span<const PairOutcome> outcomes, std::span<const int> banned) {
  constexpr std::size_t kEnough = 2;
  std::map<int, Count> counts;  // of others, in pairs without this host
  for (const auto& [pair, bad] : outcomes) {
    for (const int other : {pair.first, pair.second}) {
      if (other == host || std::ranges::find(banned, other) != banned.end()) continue;
      Count& count = counts[other];
      if (has(pair, host) || std::ranges::find(banned, pair.first) != banned.end() ||
          std::ranges::find(banned, pair.second) != banned.end())
        continue;
      count.add(bad);
    }
  }
  std::vector<int> partners;
  for (const auto& [other, count] : counts) {
    if (count.bad == 0 && partners.size() < kEnough) partners.push_back(other);
  }
  return partners;
}

}  // namespace polyring
