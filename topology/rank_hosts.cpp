#include "topology/rank_hosts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "topology/host_names.hpp"

namespace polyring {

RankHosts RankHosts::first(int ranks) const {
  RankHosts result;
  result.of_rank.assign(of_rank.begin(), of_rank.begin() + ranks);
  const auto last = std::ranges::max_element(result.of_rank);
  const int hosts = last == result.of_rank.end() ? 0 : *last + 1;
  result.names.assign(names.begin(), names.begin() + hosts);
  return result;
}

int RankHosts::per_host() const {
  const int each = ranks() / count();
  if (each * count() != ranks()) return 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (of_rank[index(rank)] != of_rank[index(rank / each * each)]) return 0;
  }
  return each;
}

std::vector<int> RankHosts::neighbors(int rank) const {
  std::vector<int> found;
  for (int other = 0; other < ranks(); ++other) {
    if (of_rank[index(other)] == of_rank[index(rank)]) found.push_back(other);
  }
  return found;
}

std::string ranks_text(std::span<const int> ranks, const RankHosts& hosts) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> texts;
  for (const int rank : ranks.first(std::min(kMost, ranks.size()))) {
    const bool known = rank < hosts.ranks();
    texts.push_back(known ? fmt::format("rank {} ({})", rank, hosts.names[index(hosts.of_rank[index(rank)])])
                          : fmt::format("rank {}", rank));
  }
  if (ranks.size() > kMost) texts.push_back(fmt::format("{} more", ranks.size() - kMost));
  return fmt::format("{}", fmt::join(texts, ", "));
}

RankHosts rank_hosts(std::span<const HostKey> ranks) {
  RankHosts hosts;
  std::map<HostKey, int> numbers;
  for (const HostKey& key : ranks) {
    const auto [entry, is_new] = numbers.try_emplace(key, hosts.count());
    if (is_new) hosts.names.push_back(key.name);
    hosts.of_rank.push_back(entry->second);
  }
  tell_apart(hosts.names);
  return hosts;
}

}  // namespace polyring
