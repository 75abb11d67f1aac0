#include "topology/inventory/job_hosts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "topology/some_hosts.hpp"

namespace polyring {
namespace {

constexpr const char* kRemedy = "probe the hosts of the job by polyring launch or polyring probe";

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

/// Every host's number, by its name.
std::map<std::string, int> numbers_of(const Inventory& inventory) {
  std::map<std::string, int> numbers;
  int first = 0;
  for (std::size_t group = 0; group < inventory.cluster.groups.size(); ++group) {
    int host = first;
    for (const HostIdentity& member : inventory.members[group]) numbers.emplace(member.name, host++);
    first += inventory.cluster.groups[group].count;
  }
  return numbers;
}

std::optional<int> find(const std::map<std::string, int>& numbers, const std::string& name) {
  if (const auto exact = numbers.find(name); exact != numbers.end()) return exact->second;
  // Not "10" of an address, nor one that several hosts have.
  if (first_label(name).find_first_not_of("0123456789") == std::string_view::npos) return std::nullopt;
  const auto same_label = [&](const auto& known) { return first_label(known.first) == first_label(name); };
  if (std::ranges::count_if(numbers, same_label) != 1) return std::nullopt;
  return std::ranges::find_if(numbers, same_label)->second;
}

Cluster like_these(const Inventory& inventory, std::span<const std::string> names, const std::string& what) {
  const int hosts = static_cast<int>(names.size());
  const int known = inventory.cluster.host_count();
  if (kinds_of(inventory.cluster).size() > 1)
    usage_error("{} has no host '{}', and its hosts are not all equal; {}", what, names.front(), kRemedy);
  if (known > 1 && hosts > known)
    usage_error("{} has {}, and the job runs on {}; {}", what, counted(known, "host"), hosts, kRemedy);
  Cluster cluster = inventory.cluster;
  cluster.groups = {{cluster.host(0), hosts}};
  return cluster;
}

}  // namespace

Cluster hosts_of_job(const Inventory& inventory, std::span<const std::string> names,
                     const std::string& what) {
  const std::map<std::string, int> numbers = numbers_of(inventory);
  std::vector<int> hosts;
  const std::string* missing = nullptr;
  for (const std::string& name : names) {
    if (const auto number = find(numbers, name)) {
      if (std::ranges::find(hosts, *number) != hosts.end())
        usage_error("{} has one host for two of the job, such as '{}'; {}", what, name, kRemedy);
      hosts.push_back(*number);
    } else {
      missing = &name;
    }
  }
  if (hosts.empty()) return like_these(inventory, names, what);
  if (missing != nullptr) usage_error("{} has no host '{}'; {}", what, *missing, kRemedy);
  for (std::size_t group = 0; group < inventory.members.size(); ++group) {
    if (inventory.members[group].size() != static_cast<std::size_t>(inventory.cluster.groups[group].count))
      usage_error("{} does not name all of its hosts; {}", what, kRemedy);
  }
  Cluster cluster = reordered(inventory, hosts).cluster;
  cluster.fabric = fabric_among(inventory.cluster.fabric, hosts);
  return cluster;
}

}  // namespace polyring
