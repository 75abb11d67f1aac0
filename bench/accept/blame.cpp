#include "bench/accept/blame.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace polyring {
namespace {

struct Count {
  int bad = 0;
  int all = 0;
};

bool has(const HostPair& pair, int host) { return pair.first == host || pair.second == host; }

/// The host that most of what is left speaks against; none: −1.
int worst_host(std::span<const PairOutcome> outcomes, const std::set<int>& known) {
  std::map<int, Count> counts;
  for (const auto& [pair, bad] : outcomes) {
    if (known.contains(pair.first) || known.contains(pair.second)) continue;
    for (const int host : {pair.first, pair.second}) {
      ++counts[host].all;
      counts[host].bad += bad ? 1 : 0;
    }
  }
  int worst = -1;
  for (const auto& [host, count] : counts) {
    if (count.bad < 2 || 2 * count.bad <= count.all) continue;
    const Count least = worst < 0 ? Count{0, 1} : counts[worst];
    if (count.bad * least.all > least.bad * count.all) worst = host;
  }
  return worst;
}

}  // namespace

Suspects find_suspects(std::span<const PairOutcome> outcomes) {
  Suspects suspects;
  const auto bad = std::ranges::count_if(outcomes, [](const PairOutcome& one) { return one.bad; });
  if (outcomes.size() > 1 && 3 * bad > 2 * static_cast<std::ptrdiff_t>(outcomes.size())) {
    suspects.everybody = true;
    return suspects;
  }
  std::set<int> known;
  for (int host = worst_host(outcomes, known); host >= 0; host = worst_host(outcomes, known))
    known.insert(host);
  suspects.hosts.assign(known.begin(), known.end());
  for (const auto& [pair, is_bad] : outcomes) {
    if (is_bad && !known.contains(pair.first) && !known.contains(pair.second)) suspects.links.push_back(pair);
  }
  return suspects;
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
      ++count.all;
      count.bad += bad ? 1 : 0;
    }
  }
  std::vector<int> partners;
  for (const auto& [other, count] : counts) {
    if (count.bad == 0 && partners.size() < kEnough) partners.push_back(other);
  }
  return partners;
}

}  // namespace polyring
