// Which ranks of a job share a host.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace polyring {

/// What tells the host of a rank from others.
struct HostKey {
  std::string boot;  // of the running kernel, as in /proc/sys/kernel/random/boot_id
  std::string name;
  auto operator<=>(const HostKey&) const = default;
};

/// The hosts of a job, numbered in the order of their first ranks.
struct RankHosts {
  std::vector<int> of_rank;
  std::vector<std::string> names;  // of each host; no two are the same

  int count() const { return static_cast<int>(names.size()); }
  int ranks() const { return static_cast<int>(of_rank.size()); }
  /// Ranks of each host when all hosts have equally many and ranks of a host are neighbours; 0 otherwise.
  int per_host() const;
  /// The ranks of the host that `rank` is on, ascending.
  std::vector<int> neighbors(int rank) const;
  /// The same without the ranks from `ranks` on.
  RankHosts first(int ranks) const;
};

/// "rank 0 (node1), rank 3 (node2), 12 more": the first eight by name. Without hosts ranks alone.
std::string ranks_text(std::span<const int> ranks, const RankHosts& hosts);

/// Two ranks share a host where both the boot and the name are the same. The name alone does not tell: cloned
/// images share it. The boot alone does not tell either: containers and emulated hosts run on one kernel,
/// each with a name and a network of its own. Hosts that share a name are named as in tell_apart().
RankHosts rank_hosts(std::span<const HostKey> ranks);

}  // namespace polyring
