#include "topology/peer_access.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/index.hpp"
#include "topology/path.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

bool joins(PathType type) {
  return type == PathType::nvl || type == PathType::pix || type == PathType::pxb || type == PathType::phb;
}

bool reach_each_other(const Machine& machine, int a, int b) {
  if (has_processes(machine)) return true;
  const auto path = find_path(machine, machine.rank_device(a), machine.rank_device(b));
  return path && joins(path->type);
}

}  // namespace

bool PeerAccess::Hosts::pair(int from, int to) const { return reaches[index(from * ranks + to)]; }

PeerAccess::PeerAccess(const Cluster& cluster) : hosts_per_domain_(cluster.hosts_per_domain()) {
  int first_rank = 0;
  int first_host = 0;
  for (const HostGroup& group : cluster.groups) {
    Hosts hosts{first_rank, first_host, group.machine.ranks(), {}};
    hosts.reaches.resize(index(hosts.ranks * hosts.ranks));
    for (int a = 0; a < hosts.ranks; ++a) {
      for (int b = 0; b < a; ++b) {
        const bool reach = reach_each_other(group.machine, a, b);
        hosts.reaches[index(a * hosts.ranks + b)] = reach;
        hosts.reaches[index(b * hosts.ranks + a)] = reach;
      }
    }
    first_rank += hosts.ranks * group.count;
    first_host += group.count;
    groups_.push_back(std::move(hosts));
  }
}

const PeerAccess::Hosts& PeerAccess::hosts_of(int rank) const {
  const auto after = std::ranges::upper_bound(groups_, rank, {}, &Hosts::first_rank);
  return *std::prev(after);
}

bool PeerAccess::operator()(int rank, int other) const {
  const Hosts& hosts = hosts_of(rank);
  const Hosts& others = hosts_of(other);
  const int from = rank - hosts.first_rank;
  const int to = other - others.first_rank;
  const int host = hosts.first_host + from / hosts.ranks;
  const int other_host = others.first_host + to / others.ranks;
  if (host == other_host) return hosts.pair(from % hosts.ranks, to % hosts.ranks);
  return hosts_per_domain_ > 1 && host / hosts_per_domain_ == other_host / hosts_per_domain_;
}

std::string PeerAccess::text() const {
  const Hosts& host = groups_.front();
  std::vector<std::string> ranges;
  std::vector<std::string> pairs;
  int inside = 0;  // pairs of the ranges
  for (int first = 0; first < host.ranks;) {
    int end = first + 1;
    const auto joined = [&](int next) {
      for (int member = first; member < next; ++member)
        if (!host.pair(member, next)) return false;
      return true;
    };
    while (end < host.ranks && joined(end)) ++end;
    inside += (end - first) * (end - first - 1) / 2;
    if (end - first > 1) ranges.push_back(fmt::format("{}-{}", first, end - 1));
    first = end;
  }
  for (int a = 0; a < host.ranks; ++a) {
    for (int b = a + 1; b < host.ranks; ++b)
      if (host.pair(a, b)) pairs.push_back(fmt::format("{}-{}", a, b));
  }
  if (pairs.empty()) return hosts_per_domain_ > 1 ? "all ranks of an NVLink domain" : "no ranks";
  if (index(inside) == index(host.ranks * (host.ranks - 1) / 2))
    return hosts_per_domain_ > 1 ? "all ranks of an NVLink domain" : "all ranks of a host";
  const std::vector<std::string>& shown = index(inside) == pairs.size() ? ranges : pairs;
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace polyring
