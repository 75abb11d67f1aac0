#include "topology/rank_hosts.hpp"

#include <algorithm>
#include <map>

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
