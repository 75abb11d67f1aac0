#include "tests/bench/accept/fake_measurer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/index.hpp"
#include "bench/accept/acceptance.hpp"
#include "bench/accept/expected_least.hpp"
#include "collectives/schedule/bound.hpp"
#include "topology/presets.hpp"
#include "topology/processes.hpp"

namespace polyring::testing {

int FakeMeasurer::host_of(Rank rank) const {
  for (std::size_t host = 0; host < site_.ranks.size(); ++host)
    if (std::ranges::find(site_.ranks[host], rank) != site_.ranks[host].end()) return static_cast<int>(host);
  return -1;
}

double FakeMeasurer::rate_GBps(const RankGroup& group, const std::string& interface) const {
  std::set<int> hosts;
  for (const Rank rank : group) hosts.insert(host_of(rank));
  if (hosts.size() == 1) return inside_GBps;
  double rate = link_GBps;
  for (const int host : hosts)
    if (const auto at = rail_GBps.find({interface, host}); at != rail_GBps.end())
      rate = std::min(rate, at->second);
  for (const int host : hosts)
    if (const auto at = host_link.find(host); at != host_link.end()) rate = std::min(rate, at->second);
  for (const auto& [pair, of_pair] : pair_link)
    if (hosts.contains(pair.first) && hosts.contains(pair.second)) rate = std::min(rate, of_pair);
  return rate;
}

double FakeMeasurer::noisy(double value) {
  return value * std::lognormal_distribution<double>(0, noise)(random_);
}

std::vector<GroupResult> FakeMeasurer::allreduce(const std::vector<RankGroup>& groups,
                                                 const GroupWork& work) {
  ++orders;
  rounds.push_back(groups);
  std::vector<GroupResult> results;
  for (const RankGroup& group : groups) {
    GroupResult& result = results.emplace_back();
    if (makes_wrong(group)) {
      result.wrong = group.size();
      continue;
    }
    // 2(m − 1)/m of the payload through each host's link.
    const double bytes = 1.0 * static_cast<double>(work.size.value);
    const double us = overhead_us + bytes / (rate_GBps(group, work.interface) * 1e3);
    for (int call = 0; call < std::max(work.fewest, 16); ++call) result.us.push_back(noisy(us));
  }
  return results;
}

bool FakeMeasurer::makes_wrong(const RankGroup& group) const {
  return std::ranges::any_of(group, [&](Rank rank) { return wrong_rank.contains(rank); });
}

std::vector<WrongRanks> FakeMeasurer::verify(const std::vector<RankGroup>& groups,
                                             const std::string& algorithm,
                                             const std::vector<ResultCase>& cases) {
  ++orders;
  std::vector<WrongRanks> results;
  for (const RankGroup& group : groups) {
    WrongRanks& wrong_on = results.emplace_back();
    for (const ResultCase& one : cases) {
      const bool wrong = makes_wrong(group) && (!wrong_case || wrong_case(algorithm, one));
      wrong_on.push_back(wrong ? group : RankGroup{});
    }
  }
  return results;
}

std::vector<std::vector<double>> FakeMeasurer::compute_us(Seconds piece, int times) {
  ++orders;
  std::vector<std::vector<double>> us;
  for (Rank rank = 0; rank < site_.ranks_in_all(); ++rank) {
    const auto at = slow_rank.find(rank);
    const double factor = at == slow_rank.end() ? 1 : at->second;
    std::vector<double>& of_rank = us.emplace_back();
    for (int time = 0; time < times; ++time) of_rank.push_back(noisy(factor * piece.value * 1e6));
  }
  return us;
}

TrainTimes FakeMeasurer::train(const TrainWork& work) {
  ++orders;
  TrainTimes times;
  for (int step = 0; step < work.steps; ++step) {
    times.alone_ms.push_back(work.compute.value * 1e3);
    times.ms.push_back(times.alone_ms.back() / efficiency);
  }
  return times;
}

std::vector<HostReply> FakeMeasurer::ask(const std::string& check, const std::string& question) {
  std::vector<HostReply> replies(site_.hosts.size());
  for (std::size_t host = 0; reply && host < replies.size(); ++host)
    replies[host] = reply(static_cast<int>(host), check, question);
  return replies;
}

std::vector<CheckRow> rows_of_check(std::string_view name, const Site& site, Measurer& measurer,
                                    const CheckOptions& options, const GivenThresholds& given) {
  const ExpectedLeast expected = expected_least;
  const Checking checking{measurer, site, given, expected, options, [](const std::string&) {}};
  std::vector<CheckRow> rows;
  run_checks({{find_check(name), false}}, checking, Budget({}, [] { return Seconds{}; }),
             {[](const Check&) {}, [&](std::vector<CheckRow> found) { rows = std::move(found); }});
  return rows;
}

Site make_site(const std::vector<int>& ranks_of_hosts, double link_GBps) {
  Site site;
  site.leaf.assign(ranks_of_hosts.size(), 0);
  Rank next = 0;
  for (std::size_t host = 0; host < ranks_of_hosts.size(); ++host) {
    site.hosts.push_back(fmt::format("node{}", host));
    RankGroup& ranks = site.ranks.emplace_back();
    for (int rank = 0; rank < ranks_of_hosts[host]; ++rank) ranks.push_back(next++);
    Machine machine;
    machine.name = site.hosts.back();
    machine.packages.resize(1);
    Nic nic;
    nic.name = "eth0";
    nic.ports = {{1, true, gigabytes_per_second(link_GBps)}};
    machine.nics = {nic};
    machine.links.push_back({{DeviceKind::package, 0}, {DeviceKind::nic, 0}, LinkKind::pcie, {}, {}});
    site.cluster.groups.push_back({with_processes(machine, ranks_of_hosts[host]), 1});
  }
  return site;
}

Site make_site_like(std::string_view preset_name, int hosts) {
  Site site = make_site(std::vector<int>(index(hosts), 2));
  std::vector<Inventory> parts;
  for (const std::string& host : site.hosts) {
    Machine machine = preset(preset_name, 1).host(0);
    machine.name = host;
    for (int gpu = 0; gpu < static_cast<int>(machine.gpus.size()); ++gpu) {
      std::string& pci = machine.gpus[index(gpu)].pci = bus_address(gpu);
      std::ranges::transform(pci, pci.begin(), [](unsigned char c) { return std::tolower(c); });
    }
    parts.push_back(inventory_of(std::move(machine)));
  }
  site.inventory = merged(std::move(parts));
  return site;
}

std::string bus_address(int gpu) { return fmt::format("0000:{:02X}:00.0", 0xa0 + gpu); }

}  // namespace polyring::testing
