#include "bench/accept/groups.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/index.hpp"
#include "base/text.hpp"
#include "collectives/schedule/bound.hpp"

namespace polyring {

int Site::ranks_in_all() const {
  int sum = 0;
  for (const RankGroup& of_host : ranks) sum += static_cast<int>(of_host.size());
  return sum;
}

std::vector<int> Site::all_hosts() const {
  std::vector<int> numbers(hosts.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Cluster Site::part(std::span<const int> of) const {
  Cluster part{cluster.name, {}, cluster.fabric};
  if (cluster.groups.empty()) return part;
  std::vector<int> by_leaf(of.begin(), of.end());
  std::ranges::stable_sort(by_leaf, {}, [&](int host) { return leaf[index(host)]; });
  const Machine* last = nullptr;
  for (const int host : by_leaf) {
    const Machine& machine = cluster.host(host);
    if (&machine == last)
      ++part.groups.back().count;  // of one group there, too
    else
      part.groups.push_back({machine, 1});
    last = &machine;
  }
  if (static_cast<int>(of.size()) < cluster.host_count()) {
    // Two hosts or more: under one leaf, or each as if alone under its own.
    const bool one_leaf = leaf[index(by_leaf.front())] == leaf[index(by_leaf.back())];
    part.fabric.hosts_per_leaf = one_leaf ? 0 : 1;
    part.fabric.pods.clear();
    const bool one_domain =
        std::ranges::all_of(of, [&](int host) { return cluster.in_one_domain(host, of.front()); });
    // Of several NVLink domains nobody is taken to need only NVLinks.
    part.fabric.hosts_per_nvlink_domain = one_domain && of.size() > 1 ? static_cast<int>(of.size()) : 0;
    if (part.fabric.hosts_per_nvlink_domain > 0) part.fabric.hosts_per_leaf = 0;
  }
  return part;
}

std::vector<int> leaves_in_turn(std::size_t hosts, int per_leaf) {
  std::vector<int> leaves(hosts, 0);
  for (std::size_t host = 0; host < hosts && per_leaf > 0; ++host)
    leaves[host] = static_cast<int>(host) / per_leaf;
  return leaves;
}

double busbw_GBps(Bytes size, int ranks, double us) {
  return us > 0 ? bus_bandwidth(size, ranks, microseconds(us)).gigabytes_per_second() : 0;
}

Bytes payload_for(const Checking& checking, std::string_view check, const std::vector<int>& hosts) {
  constexpr double kCallsInTurn = 16;
  constexpr Bytes kLeast{64 << 10};
  const Bytes most{std::bit_floor(std::max(kLeast.value, checking.options.most_payload.value))};
  const std::optional<Bytes> given = checking.given.size_of(check);
  if (given && given->value <= most.value && given->value >= sizeof(float) &&
      given->value % sizeof(float) == 0)
    return *given;
  const Bytes unknown{std::min<std::uint64_t>(8 << 20, most.value)};
  const Cluster part = checking.site.part(hosts);
  if (part.groups.empty()) return unknown;
  const double of_one = allreduce_bound(part, {1 << 20}).time.value / (1 << 20);  // of a byte
  if (!(of_one > 0) || !std::isfinite(of_one)) return unknown;
  const double fitting = checking.options.turn.value / kCallsInTurn / of_one;
  const double clamped =
      std::clamp(fitting, static_cast<double>(kLeast.value), static_cast<double>(most.value));
  return {std::bit_floor(static_cast<std::uint64_t>(clamped))};
}

std::string subject_of(const Site& site, const std::vector<int>& hosts) {
  if (hosts.size() == site.hosts.size() && hosts.size() > 1) return "all hosts";
  std::vector<std::string> names;
  for (const int host : hosts) names.push_back(site.hosts[index(host)]);
  return fmt::format("{}", fmt::join(names, " and "));
}

RankGroup ranks_of(const Site& site, const std::vector<int>& hosts) {
  RankGroup ranks;
  for (const int host : hosts)
    ranks.insert(ranks.end(), site.ranks[index(host)].begin(), site.ranks[index(host)].end());
  std::ranges::sort(ranks);
  return ranks;
}

CheckRow row_of(const Checking& checking, std::string_view check, const std::vector<int>& hosts) {
  CheckRow row;
  row.check = check;
  row.subject = subject_of(checking.site, hosts);
  for (const int host : hosts) row.hosts.push_back(checking.site.hosts[index(host)]);
  row.source = checking.site.source;
  return row;
}

void measure_at_once(const Checking& checking, const std::vector<HostGroupUnderTest>& groups,
                     const GroupWork& work, const std::vector<Measured*>& measured) {
  std::vector<RankGroup> ranks;
  for (const HostGroupUnderTest& group : groups) ranks.push_back(ranks_of(checking.site, group.hosts));
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<GroupResult> results = checking.measurer.allreduce(ranks, work);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Measured& all = *measured[i];
    ++all.attempts;
    all.seconds += took.count() / static_cast<double>(groups.size());
    all.wrong += results[i].wrong;
    for (const double us : results[i].us)
      all.busbw_GBps.push_back(busbw_GBps(work.size, static_cast<int>(ranks[i].size()), us));
  }
}

/// What a group has of uplinks that others use at the same time: its share of its leaves', and of those of
/// pods that of one host of all, since which pods it is in is not known.
void share_uplinks(Fabric& of_group, int sharers, const Fabric& fabric) {
  of_group.leaf_uplink = (1.0 / sharers) * of_group.leaf_uplink;
  if (of_group.hosts_per_leaf == 0 || !of_group.pods.empty()) return;
  for (const Pods& pods : fabric.pods) {
    const Bandwidth share = (1.0 / pods.hosts) * pods.uplink;
    if (share.known() && (!of_group.leaf_uplink.known() || share < of_group.leaf_uplink))
      of_group.leaf_uplink = share;
  }
}

OfOthers::OfOthers(std::vector<double> values) : sorted_(std::move(values)) { std::ranges::sort(sorted_); }

std::optional<double> OfOthers::median(std::optional<double> own, Part part) const {
  std::size_t left_out = sorted_.size();
  if (own) left_out = static_cast<std::size_t>(std::ranges::lower_bound(sorted_, *own) - sorted_.begin());
  const std::size_t others = sorted_.size() - (own ? 1 : 0);
  if (others == 0) return std::nullopt;
  const std::size_t first = part == Part::all ? 0 : others / 2;
  const auto at = [&](std::size_t number) { return sorted_[number < left_out ? number : number + 1]; };
  const std::size_t last = others - 1;
  return std::midpoint(at((first + last) / 2), at((first + last + 1) / 2));
}

Threshold least_of(const Checking& checking, const HostGroupUnderTest& group, const GroupWork& work,
                   std::optional<double> of_others, const std::string& others) {
  Threshold threshold;
  Cluster part = checking.site.part(group.hosts);
  share_uplinks(part.fabric, group.sharers, checking.site.cluster.fabric);
  if (!part.groups.empty())
    threshold = checking.expected(part, work.algorithm, work.size).value_or(Threshold{});
  if (!of_others) return threshold;
  const double least = kOfPeers * *of_others;
  if (least > threshold.least.value_or(0))
    return {least, {}, fmt::format("{:.0f} % of the median of {}", 100 * kOfPeers, others)};
  return threshold;
}

void judge_measured(CheckRow& row, const Measured& measured, Bytes size, const Threshold& threshold) {
  judge(row, kBusbw, measured.busbw_GBps, threshold);
  row.size_bytes = size.value;
  row.attempts = measured.attempts;
  row.seconds = measured.seconds;
  fail_if_wrong(row, measured.wrong);
}

void fail_if_wrong(CheckRow& row, std::uint64_t wrong) {
  if (wrong == 0) return;
  row.verdict = Verdict::fail;
  row.why = fmt::format("The result has {}.", counted(static_cast<std::int64_t>(wrong), "wrong element"));
  row.remedy = "See what the check 'correct' says of ranks and hosts.";
}

}  // namespace polyring
