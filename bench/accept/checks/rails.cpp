// rails: each network interface that hosts have several of, by itself, over TCP.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "bench/accept/blame.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "collectives/runtime/net/address.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "rails";
constexpr int kRoundsOfPairs = 3;
constexpr const char* kOfVerbs =
    "Rails of verbs are measured one by one by running accept with UCX_NET_DEVICES or NCCL_IB_HCA set to "
    "each.";

/// By name, in Mbit/s; 0 where the kernel does not say.
using Interfaces = std::map<std::string, int>;

/// The network interfaces that are devices and have an address; of emulated hosts, all.
std::string answer(const std::string& question) {
  const std::filesystem::path net("/sys/class/net");
  Interfaces found;
  std::error_code none;
  for (const NetworkInterface& one : network_interfaces()) {
    if (one.loopback || (question != "all" && !std::filesystem::exists(net / one.name / "device", none)))
      continue;
    int speed = 0;
    std::ifstream(net / one.name / "speed") >> speed;
    found[one.name] = std::max(0, speed);
  }
  return nlohmann::json(found).dump();
}

struct Rail {
  std::string name;
  int speed = 0;
  std::vector<int> hosts{};  // that have it
  Measured measured{};
};

class RailsCheck {
 public:
  explicit RailsCheck(const Checking& checking) : checking_(checking), site_(checking.site) {
    work_.algorithm = checking.options.algorithm;
    work_.time = checking.options.turn;
  }

  std::vector<CheckRow> run() {
    if (site_.hosts.size() < 2) return {skipped("There is one host.")};
    find_rails();
    std::vector<CheckRow> rows = hosts_without();
    if (rails_.empty() && rows.empty())
      return {skipped("Hosts do not have two network interfaces of one speed with an address of their own.")};
    for (Rail& rail : rails_) measure(rail);
    for (Rail& rail : rails_) {
      CheckRow row = judged(rail);
      while (checking_.must_repeat(row.verdict, rail.measured.attempts, 1)) {
        measure(rail);
        row = judged(rail);
      }
      const bool is_bad = row.verdict == Verdict::fail;
      rows.push_back(std::move(row));
      if (is_bad) add_culprits(rail, rows);
    }
    return rows;
  }

 private:
  CheckRow skipped(const std::string& why) const {
    CheckRow row = row_of(checking_, kName, {});
    row.verdict = Verdict::skipped;
    row.why = why;
    row.remedy = kOfVerbs;
    return row;
  }

  /// Those that most hosts have, where several have the same speed: a slower one may be for management.
  void find_rails() {
    const std::vector<HostReply> replies =
        checking_.measurer.ask(std::string(kName), site_.source == Source::emulated ? "all" : "");
    std::map<std::string, Rail> by_name;
    for (std::size_t host = 0; host < replies.size(); ++host) {
      if (replies[host].text.empty()) continue;
      for (const auto& [name, speed] : nlohmann::json::parse(replies[host].text).get<Interfaces>()) {
        Rail& rail = by_name[name];
        rail.name = name;
        rail.speed = std::max(rail.speed, speed);
        rail.hosts.push_back(static_cast<int>(host));
      }
    }
    std::erase_if(by_name, [&](const auto& one) {
      return one.second.hosts.size() < 2 || 2 * one.second.hosts.size() <= site_.hosts.size();
    });
    std::map<int, int> of_speed;
    for (const auto& [name, rail] : by_name) ++of_speed[rail.speed];
    for (auto& [name, rail] : by_name)
      if (of_speed[rail.speed] > 1) rails_.push_back(std::move(rail));
  }

  std::vector<CheckRow> hosts_without() const {
    std::vector<CheckRow> rows;
    for (const Rail& rail : rails_) {
      for (int host = 0; host < static_cast<int>(site_.hosts.size()); ++host) {
        if (std::ranges::find(rail.hosts, host) != rail.hosts.end()) continue;
        CheckRow& row = rows.emplace_back(row_of(checking_, kName, {host}));
        row.subject = fmt::format("{} of {}", rail.name, site_.hosts[index(host)]);
        row.verdict = Verdict::fail;
        row.why = fmt::format("It is down or has no address, and {} of {} hosts have one there.",
                              rail.hosts.size(), site_.hosts.size());
        row.remedy = "See to its cable, its driver and the configuration of the network.";
      }
    }
    return rows;
  }

  /// The first rank of each host: so all that moves goes through the interface.
  RankGroup first_ranks(const std::vector<int>& hosts) const {
    RankGroup ranks;
    for (const int host : hosts) ranks.push_back(site_.ranks[index(host)].front());
    std::ranges::sort(ranks);
    return ranks;
  }

  /// Of each group, over this interface.
  std::vector<std::vector<double>> busbw_over(const Rail& rail, const std::vector<std::vector<int>>& groups) {
    work_.interface = rail.name;
    work_.size = payload_for(checking_, kName, rail.hosts);
    std::vector<RankGroup> ranks;
    for (const std::vector<int>& group : groups) ranks.push_back(first_ranks(group));
    std::vector<std::vector<double>> found;
    for (const GroupResult& result : checking_.measurer.allreduce(ranks, work_)) {
      std::vector<double>& of_group = found.emplace_back();
      for (const double us : result.us)
        of_group.push_back(busbw_GBps(work_.size, static_cast<int>(ranks[found.size() - 1].size()), us));
    }
    return found;
  }

  void measure(Rail& rail) {
    checking_.progress(rail.name);
    const auto more = busbw_over(rail, {rail.hosts}).front();
    rail.measured.busbw_GBps.insert(rail.measured.busbw_GBps.end(), more.begin(), more.end());
    ++rail.measured.attempts;
  }

  CheckRow judged(const Rail& rail) const {
    std::vector<double> others;
    for (const Rail& other : rails_)
      if (other.name != rail.name && other.speed == rail.speed && !other.measured.busbw_GBps.empty())
        others.push_back(summarize(other.measured.busbw_GBps).median);
    Threshold otherwise;
    if (!others.empty())
      otherwise = {kOfPeers * summarize(others).median,
                   {},
                   fmt::format("{:.0f} % of the median of the other rails", 100 * kOfPeers)};
    CheckRow row = row_of(checking_, kName, rail.hosts);
    row.subject = rail.name;
    judge(row, kBusbw, rail.measured.busbw_GBps,
          checking_.threshold({std::string(kName), kBusbw, work_.size.value, rail.name}, otherwise));
    row.size_bytes = work_.size.value;
    row.attempts = rail.measured.attempts;
    if (row.verdict == Verdict::fail)
      row.remedy = "See to the switch of this rail, and to the ports and cables of the hosts on it.";
    return row;
  }

  /// Hosts by twos over a slow rail: whose pairs are slow beside the fastest is the cause.
  void add_culprits(const Rail& rail, std::vector<CheckRow>& rows) {
    if (rail.hosts.size() < 3) return;
    std::map<HostPair, double> medians;
    double most = 0;
    for (const PairRound& round : some_pair_rounds(static_cast<int>(rail.hosts.size()), 0, kRoundsOfPairs)) {
      std::vector<std::vector<int>> groups;
      for (const auto& [a, b] : round) groups.push_back({rail.hosts[index(a)], rail.hosts[index(b)]});
      checking_.progress(fmt::format("{}, hosts by twos", rail.name));
      const auto found = busbw_over(rail, groups);
      for (std::size_t i = 0; i < round.size(); ++i) {
        const double median = found[i].empty() ? 0 : summarize(found[i]).median;
        medians[round[i]] = median;
        most = std::max(most, median);
      }
    }
    std::vector<PairOutcome> outcomes;
    for (const auto& [pair, median] : medians) outcomes.push_back({pair, median < kOfPeers * most});
    const Suspects suspects = find_suspects(outcomes);
    for (const int suspect : suspects.hosts) {
      CheckRow& row = rows.emplace_back(row_of(checking_, kName, {rail.hosts[index(suspect)]}));
      row.subject = fmt::format("{} of {}", rail.name, row.subject);
      row.verdict = Verdict::fail;
      row.why = "The rail is slow between this host and others, and fast between the others.";
      row.remedy = "See to this port, its cable and the switch's port, and to its PCIe link.";
    }
  }

  const Checking& checking_;
  const Site& site_;
  GroupWork work_;
  std::vector<Rail> rails_;
};

std::vector<CheckRow> run(const Checking& checking) { return RailsCheck(checking).run(); }

/// How many interfaces hosts have is not known before they are asked; most that have several have two.
int turns(const Site& site, const CheckOptions&) { return site.hosts.size() > 1 ? 2 : 0; }

}  // namespace

const Check kRails{kName, "network interfaces one by one: a slow one of several", turns, {kBusbw}, run,
                   answer};

}  // namespace polyring
