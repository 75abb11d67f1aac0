// rails: each network interface that hosts have several of, by itself, over TCP.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "bench/accept/blame.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "bench/accept/pairing.hpp"
#include "bench/accept/rail_reach.hpp"
#include "bench/accept/verbs_ports.hpp"
#include "collectives/runtime/net/address.hpp"
#include "topology/host_names.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "rails";
constexpr int kRoundsOfPairs = 3;
/// What an interface must have sent at least, of what was to be sent by it.
constexpr double kMustPass = 0.5;
constexpr const char* kOfVerbs =
    "Ports of InfiniBand and RoCE are measured one by one by running accept with UCX_NET_DEVICES or "
    "NCCL_IB_HCA "
    "set to each.";

/// By the interface's name.
using OfInterfaces = std::map<std::string, std::int64_t>;

constexpr const char* kSpeeds = "speeds";         // of those that are devices and have an address, in Mbit/s
constexpr const char* kSent = "sent";             // what each has sent, in bytes
constexpr const char* kDown = "down";             // those that are devices and not running
constexpr const char* kNoCarrier = "no carrier";  // those that are set up and have none, devices or not

constexpr const char* kVerbs = "verbs";  // ports of InfiniBand and RoCE

constexpr const char* kListen = "listen";    // over this interface; the answer says where
constexpr const char* kConnect = "connect";  // to some of these; the answer says why which cannot be reached
constexpr const char* kStop = "stop";        // listening

std::string answer_of_reach(const nlohmann::json& asked) {
  if (asked.contains(kListen)) return listen_on(asked.at(kListen).get<std::string>());
  if (asked.contains(kStop)) {
    stop_listening();
    return "";
  }
  nlohmann::json said = nlohmann::json::array();
  for (const auto& [place, why] : unreached_of(asked.at(kConnect).get<std::vector<std::string>>()))
    said.push_back({{"to", place}, {"why", why}});
  return said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string answer_of_down(const std::filesystem::path& net, const std::string& question) {
  OfInterfaces down;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(net, none)) {
    const auto word = [&](const char* name) {
      std::ifstream file(entry.path() / name);
      std::string text;
      file >> text;
      return text;
    };
    const bool is_down =
        question == kDown
            ? word("operstate") == "down" && std::filesystem::exists(entry.path() / "device", none)
            : word("carrier") == "0";  // of one that is not set up it cannot be read
    if (is_down) down[entry.path().filename()] = 0;
  }
  return nlohmann::json(down).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string answer_of_verbs() {
  OfInterfaces ports;
  for (const auto& [name, port] : read_verbs_ports("/sys")) ports[name] = 0;
  return nlohmann::json(ports).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// A speed of 0 or less is one that the kernel does not know.
std::string answer(const std::string& question) {
  if (question.starts_with('{')) return answer_of_reach(nlohmann::json::parse(question));
  const std::filesystem::path net("/sys/class/net");
  if (question == kVerbs) return answer_of_verbs();
  if (question == kDown || question == kNoCarrier) return answer_of_down(net, question);
  OfInterfaces found;
  std::error_code none;
  for (const NetworkInterface& one : network_interfaces()) {
    if (one.loopback) continue;
    const auto number = [&](const char* file) {
      std::ifstream text(net / one.name / file);
      std::int64_t value = 0;
      return text >> value ? std::optional(value) : std::nullopt;
    };
    if (question == kSent) {
      if (const auto sent = number("statistics/tx_bytes")) found[one.name] = *sent;
    } else if (question != kSpeeds || std::filesystem::exists(net / one.name / "device", none)) {
      found[one.name] = number("speed").value_or(0);
    }
  }
  return nlohmann::json(found).dump();
}

struct Rail {
  std::string name;
  std::int64_t speed = 0;
  std::vector<int> hosts{};  // that have it
  Bytes size{};
  Measured measured{};
  std::set<int> around{};  // hosts that have sent through another interface
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
    for (const std::vector<CheckRow>& more : {down_everywhere(), of_verbs()})
      rows.insert(rows.end(), more.begin(), more.end());
    if (rails_.empty()) {
      rows.push_back(
          skipped("Hosts do not have two network interfaces of one speed with an address of their own."));
      return rows;
    }
    for (Rail& rail : rails_) {
      const std::vector<CheckRow> more = leave_out_unreached(rail);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    std::erase_if(rails_, [](const Rail& rail) { return rail.hosts.size() < 2; });
    for (Rail& rail : rails_)
      if (checking_.has_time(1)) measure(rail);
    for (Rail& rail : rails_) {
      CheckRow row = judged(rail);
      while (rail.measured.wrong == 0 &&
             checking_.must_repeat(row.verdict, rail.measured.attempts, turns_to_repeat(rail, row.verdict))) {
        measure(rail);
        row = judged(rail);
      }
      const bool is_slow = row.verdict == Verdict::fail && rail.measured.wrong == 0;
      rows.push_back(std::move(row));
      if (is_slow) add_culprits(rail, rows);
    }
    return rows;
  }

 private:
  /// What was slow once is repeated if there is any time. Then there must be time left to find the host of a
  /// slow rail.
  static int turns_to_repeat(const Rail& rail, Verdict verdict) {
    const bool is_slow = verdict == Verdict::fail && rail.measured.attempts > 1;
    return is_slow && rail.hosts.size() > 2 ? 1 + kRoundsOfPairs : 1;
  }

  CheckRow skipped(const std::string& why) const {
    CheckRow row = row_of(checking_, kName, {});
    row.verdict = Verdict::skipped;
    row.why = why;
    row.remedy = kOfVerbs;
    return row;
  }

  std::vector<OfInterfaces> ask(const char* question) {
    std::vector<OfInterfaces> found;
    for (const HostReply& reply : checking_.measurer.ask(std::string(kName), question)) {
      OfInterfaces& of_host = found.emplace_back();
      if (!reply.text.empty()) of_host = nlohmann::json::parse(reply.text).get<OfInterfaces>();
    }
    return found;
  }

  /// Those that most hosts have, or one of two, where several have the same speed: a slower one may be for
  /// management. Where the kernel knows no speed nobody can say; interfaces of emulated hosts are equal.
  void find_rails() {
    const bool emulated = site_.source == Source::emulated;
    const std::vector<OfInterfaces> replies = ask(emulated ? "" : kSpeeds);
    std::map<std::string, Rail> by_name;
    for (std::size_t host = 0; host < replies.size(); ++host) {
      for (const auto& [name, speed] : replies[host]) {
        if (speed <= 0 && !emulated) continue;
        Rail& rail = by_name[name];
        rail.name = name;
        rail.speed = std::max(rail.speed, speed);
        rail.hosts.push_back(static_cast<int>(host));
      }
    }
    std::map<std::int64_t, int> of_speed;
    for (const auto& [name, rail] : by_name)
      if (2 * rail.hosts.size() >= site_.hosts.size()) ++of_speed[rail.speed];
    for (auto& [name, rail] : by_name)
      if (2 * rail.hosts.size() >= site_.hosts.size() && of_speed[rail.speed] > 1)
        rails_.push_back(std::move(rail));
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
        row.remedy = "Check its cable, its driver and the configuration of the network.";
      }
    }
    return rows;
  }

  /// A rail that is dead on all hosts is none of those above: whether there should be one nobody here knows.
  /// Interfaces of emulated hosts are no devices.
  std::vector<CheckRow> down_everywhere() {
    std::map<std::string, std::vector<int>> down;
    const std::vector<OfInterfaces> replies = ask(site_.source == Source::emulated ? kNoCarrier : kDown);
    for (std::size_t host = 0; host < replies.size(); ++host)
      for (const auto& [name, unused] : replies[host]) down[name].push_back(static_cast<int>(host));
    std::vector<CheckRow> rows;
    for (const auto& [name, hosts] : down) {
      if (std::ranges::find(rails_, name, &Rail::name) != rails_.end()) continue;
      CheckRow& row = rows.emplace_back(row_of(checking_, kName, hosts));
      row.subject = name;
      row.verdict = Verdict::shown;
      row.why =
          fmt::format("It is down on {}.", hosts.size() == site_.hosts.size()
                                               ? "all hosts"
                                               : counted(static_cast<std::int64_t>(hosts.size()), "host"));
      row.remedy = "If it is to be a rail, check its switch, cables and configuration.";
    }
    return rows;
  }

  /// MPI chooses among these ports before it starts, so that none can be measured by itself.
  std::vector<CheckRow> of_verbs() {
    std::set<std::string> ports;
    std::vector<int> hosts;
    const std::vector<OfInterfaces> replies = ask(kVerbs);
    for (std::size_t host = 0; host < replies.size(); ++host) {
      for (const auto& [name, unused] : replies[host]) ports.insert(name);
      if (!replies[host].empty()) hosts.push_back(static_cast<int>(host));
    }
    if (ports.empty()) return {};
    CheckRow row = row_of(checking_, kName, hosts);
    row.subject =
        fmt::format("{} of InfiniBand or RoCE", counted(static_cast<std::int64_t>(ports.size()), "port"));
    row.verdict = Verdict::shown;
    row.why =
        "None is measured by itself: 'links' judges state, width and speed of these ports, 'nic.counters' "
        "their "
        "errors, and whether each carried messages.";
    row.remedy = kOfVerbs;
    return {row};
  }

  /// Hosts that others do not reach over the rail are left out of it, or all where that is nobody's fault:
  /// they would wait for each other.
  std::vector<CheckRow> leave_out_unreached(Rail& rail) {
    if (rail.hosts.size() < 2) return {};
    checking_.progress(rail.name + ", connections");
    const auto asked = [&](const char* what, const nlohmann::json& of) {
      return checking_.measurer.ask(std::string(kName), nlohmann::json{{what, of}}.dump());
    };
    const std::vector<HostReply> heard = asked(kListen, rail.name);
    std::vector<CheckRow> rows;
    std::vector<std::string> endpoints;
    std::vector<int> listening;
    for (const int host : rail.hosts) {
      const HostReply& reply = heard[index(host)];
      if (reply.error.empty()) {
        listening.push_back(host);
        endpoints.push_back(reply.text);
      } else {
        rows.push_back(row_unreached({host}, fmt::format("{} of {}", rail.name, site_.hosts[index(host)]),
                                     fmt::format("Nothing can listen there: {}.", reply.error)));
      }
    }
    rail.hosts = std::move(listening);
    const std::vector<HostReply> replies = asked(kConnect, endpoints);
    asked(kStop, true);
    std::map<HostPair, std::string> bad;  // by place in the rail
    for (std::size_t from = 0; from < rail.hosts.size(); ++from) {
      const HostReply& reply = replies[index(rail.hosts[from])];
      if (reply.text.empty()) continue;
      for (const nlohmann::json& one : nlohmann::json::parse(reply.text)) {
        const auto to = one.at("to").get<std::size_t>();
        bad[{static_cast<int>(std::min(from, to)), static_cast<int>(std::max(from, to))}] =
            one.at("why").get<std::string>();
      }
    }
    if (!bad.empty()) std::ranges::move(rows_of_unreached(rail, bad), std::back_inserter(rows));
    return rows;
  }

  CheckRow row_unreached(const std::vector<int>& hosts, std::string subject, std::string why) const {
    CheckRow row = row_of(checking_, kName, hosts);
    row.subject = std::move(subject);
    row.verdict = Verdict::fail;
    row.why = std::move(why);
    row.remedy = "Check its address, VLAN, cable and switch port there, and firewalls.";
    return row;
  }

  std::vector<CheckRow> rows_of_unreached(Rail& rail, const std::map<HostPair, std::string>& bad) {
    const auto places = static_cast<int>(rail.hosts.size());
    std::vector<PairOutcome> outcomes;
    std::set<HostPair> tried;
    for (int place = 0; place < places; ++place) {
      for (const int further : {1, places / 2}) {
        const int other = (place + further) % places;
        const HostPair pair{std::min(place, other), std::max(place, other)};
        if (pair.first != pair.second && tried.insert(pair).second)
          outcomes.push_back({pair, bad.contains(pair)});
      }
    }
    const Suspects suspects = find_suspects(outcomes);
    std::vector<CheckRow> rows;
    const auto add = [&](const std::vector<int>& hosts, std::string subject, std::string why) {
      rows.push_back(row_unreached(hosts, std::move(subject), std::move(why)));
    };
    const std::string& example = bad.begin()->second;
    for (const int suspect : suspects.hosts) {
      const int host = rail.hosts[index(suspect)];
      add({host}, fmt::format("{} of {}", rail.name, site_.hosts[index(host)]),
          fmt::format("This host and the others cannot reach each other over this rail: {}.", example));
    }
    for (const auto& [a, b] : suspects.links) {
      const std::vector<int> two{rail.hosts[index(a)], rail.hosts[index(b)]};
      add(two, fmt::format("{} between {}", rail.name, subject_of(site_, two)),
          fmt::format("They do not reach each other over this rail: {}.", example));
    }
    if (suspects.everybody)
      add(rail.hosts, rail.name,
          fmt::format("Most hosts do not reach each other over this rail: {}.", example));
    std::vector<int> left;
    for (int place = 0; place < places && suspects.links.empty() && !suspects.everybody; ++place)
      if (std::ranges::find(suspects.hosts, place) == suspects.hosts.end())
        left.push_back(rail.hosts[index(place)]);
    rail.hosts = std::move(left);
    return rows;
  }

  /// The first rank of each host: so all that moves goes through the interface.
  RankGroup first_ranks(const std::vector<int>& hosts) const {
    RankGroup ranks;
    for (const int host : hosts) ranks.push_back(site_.ranks[index(host)].front());
    std::ranges::sort(ranks);
    return ranks;
  }

  /// Each group over this interface.
  std::vector<Measured> measured_over(const Rail& rail, const std::vector<std::vector<int>>& groups) {
    work_.interface = rail.name;
    work_.size = rail.size;
    std::vector<RankGroup> ranks;
    for (const std::vector<int>& group : groups) ranks.push_back(first_ranks(group));
    std::vector<Measured> found;
    for (const GroupResult& result : checking_.measurer.allreduce(ranks, work_)) {
      const auto members = static_cast<int>(ranks[found.size()].size());
      Measured& of_group = found.emplace_back();
      of_group.wrong = result.wrong;
      for (const double us : result.us) of_group.busbw_GBps.push_back(busbw_GBps(work_.size, members, us));
    }
    return found;
  }

  void measure(Rail& rail) {
    checking_.progress(rail.name);
    rail.size = payload_for(checking_, kName, rail.hosts);
    const std::vector<OfInterfaces> before = ask(kSent);
    const Measured more = measured_over(rail, {rail.hosts}).front();
    const std::vector<OfInterfaces> after = ask(kSent);
    std::ranges::copy(more.busbw_GBps, std::back_inserter(rail.measured.busbw_GBps));
    rail.measured.wrong += more.wrong;
    ++rail.measured.attempts;
    // Each call sends the payload once at least.
    const double least = kMustPass * static_cast<double>(rail.size.value * more.busbw_GBps.size());
    for (const int host : rail.hosts) {
      const auto from = before[index(host)].find(rail.name);
      const auto to = after[index(host)].find(rail.name);
      if (from == before[index(host)].end() || to == after[index(host)].end()) continue;
      if (static_cast<double>(to->second - from->second) < least) rail.around.insert(host);
    }
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
    judge_measured(row, rail.measured, rail.size,
                   checking_.threshold({std::string(kName), kBusbw, rail.size.value, rail.name}, otherwise));
    if (rail.measured.attempts == 0) {
      row.why = "The budget had no time to measure it.";
      row.remedy = "Give a larger --budget.";
    }
    if (row.verdict == Verdict::fail && rail.measured.wrong == 0)
      row.remedy = "Check the switch of this rail, and the ports and cables of the hosts on it.";
    if (rail.around.empty() || rail.measured.wrong > 0) return row;
    std::vector<std::string> names;
    for (const int host : rail.around) names.push_back(site_.hosts[index(host)]);
    row.verdict = Verdict::inconclusive;
    row.why = fmt::format("{} sent what was meant for it through another interface.", names_text(names));
    row.remedy = "Give each rail a subnet or a routing table of its own (ip rule), and run this check again.";
    return row;
  }

  /// Hosts by twos over a slow rail: whose pairs are slow beside the fastest is the cause.
  void add_culprits(const Rail& rail, std::vector<CheckRow>& rows) {
    if (rail.hosts.size() < 3) return;
    if (!checking_.has_time(kRoundsOfPairs)) {
      rows.back().why += " The budget had no time to find out on which hosts.";
      return;
    }
    std::map<HostPair, double> medians;
    double most = 0;
    for (const PairRound& round : some_pair_rounds(static_cast<int>(rail.hosts.size()), 0, kRoundsOfPairs)) {
      std::vector<std::vector<int>> groups;
      for (const auto& [a, b] : round) groups.push_back({rail.hosts[index(a)], rail.hosts[index(b)]});
      checking_.progress(fmt::format("{}, hosts by twos", rail.name));
      const auto found = measured_over(rail, groups);
      for (std::size_t i = 0; i < round.size(); ++i) {
        const auto& busbw = found[i].busbw_GBps;
        const double median = busbw.empty() ? 0 : summarize(busbw).median;
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
      row.remedy = "Check this port, its cable and the switch's port, and its PCIe link.";
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
