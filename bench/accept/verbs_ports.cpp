#include "bench/accept/verbs_ports.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "base/text.hpp"
#include "bench/accept/groups.hpp"
#include "topology/host_names.hpp"
#include "topology/inventory/probe/sysfs.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Less are messages of a subnet manager, of connections and the like.
constexpr double kCarried = 1 << 20;
/// Of what the port of the other hosts sent: less than this part is nothing.
constexpr double kLeastPart = 0.01;
/// Of what the port that sent most did: less goes to files, such as the results that one host writes.
constexpr double kLeastOfMost = 0.05;
constexpr const char* kIfARail =
    "If one is to be a rail, check its switch, and which ports MPI may use (UCX_NET_DEVICES).";

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream text(file);
  std::uint64_t value = 0;
  return text >> value ? std::optional(value) : std::nullopt;
}

/// Documentation/ABI/stable/sysfs-class-infiniband: port_xmit_data is in units of 4 octets; EFA has tx_bytes.
/// A counter of 32 bits stays at its largest value, and says nothing then.
std::optional<std::uint64_t> sent_by(const fs::path& port) {
  if (const auto data = number_in(port / "counters" / "port_xmit_data"))
    return *data == std::numeric_limits<std::uint32_t>::max() ? std::nullopt : std::optional(4 * *data);
  return number_in(port / "hw_counters" / "tx_bytes");
}

/// Of one port, by host.
struct PortOfHosts {
  std::vector<const VerbsPort*> now;        // null: the host has none of that name
  std::vector<std::optional<double>> sent;  // bytes in the time between
  bool has_carried(std::size_t host) const { return sent[host] && *sent[host] >= kCarried; }
  /// What one host or a few sent by it says nothing of the others: they may have other files to write.
  bool is_of_many() const {
    const auto having = std::ranges::count_if(now, [](const VerbsPort* port) { return port != nullptr; });
    const auto carrying = static_cast<std::int64_t>(carried().size());
    return carrying >= 2 && 2 * carrying >= having;
  }
  std::vector<double> carried() const {
    std::vector<double> all;
    for (std::size_t host = 0; host < sent.size(); ++host)
      if (has_carried(host)) all.push_back(*sent[host]);
    return all;
  }
};

std::optional<double> sent_between(const VerbsPorts& before, const std::string& name, const VerbsPort& now) {
  const auto was = before.find(name);
  if (was == before.end() || !was->second.sent || !now.sent) return std::nullopt;
  // One that is less was reset meanwhile.
  return static_cast<double>(*now.sent < *was->second.sent ? *now.sent : *now.sent - *was->second.sent);
}

std::map<std::string, PortOfHosts> by_name(std::span<const VerbsPorts> before,
                                           std::span<const VerbsPorts> now) {
  std::map<std::string, PortOfHosts> ports;
  for (std::size_t host = 0; host < now.size(); ++host) {
    for (const auto& [name, port] : now[host]) {
      PortOfHosts& of = ports[name];
      of.now.resize(now.size());
      of.sent.resize(now.size());
      of.now[host] = &port;
      of.sent[host] = sent_between(before[host], name, port);
    }
  }
  return ports;
}

std::string state_text(const VerbsPort& port) { return port.state.empty() ? "of unknown state" : port.state; }

std::string states_text(const PortOfHosts& port) {
  std::set<std::string> states;
  for (const VerbsPort* of_host : port.now)
    if (of_host != nullptr) states.insert(state_text(*of_host));
  return fmt::format("{}", fmt::join(states, ", "));
}

std::string bytes_text(double bytes) { return to_text(Bytes{static_cast<std::uint64_t>(bytes)}); }

class VerbsJudge {
 public:
  VerbsJudge(const Checking& checking, std::string_view check, std::map<std::string, PortOfHosts> ports)
      : checking_(checking), check_(check), ports_(std::move(ports)) {
    std::map<std::string, double> usual;
    double most = 0;
    for (const auto& [name, port] : ports_) {
      const std::vector<double> carried = port.carried();
      if (carried.empty()) continue;
      usual[name] = summarize(carried).median;
      if (port.is_of_many()) most = std::max(most, usual[name]);
    }
    for (const auto& [name, sent] : usual)
      if (sent >= kLeastOfMost * most) (ports_.at(name).is_of_many() ? used_ : used_by_few_).insert(name);
  }

  std::vector<CheckRow> rows() const {
    if (used_.empty() && used_by_few_.empty()) return {none_used()};
    std::vector<CheckRow> rows;
    for (const std::string& name : used_) add_silent(name, rows);
    if (rows.empty() && !used_.empty()) rows.push_back(all_carried());
    for (const std::string& name : used_by_few_) rows.push_back(used_by_few(name));
    if (used_.size() + used_by_few_.size() < ports_.size()) rows.push_back(unused());
    return rows;
  }

 private:
  CheckRow about(std::vector<int> hosts, std::string subject, Verdict verdict) const {
    CheckRow row = row_of(checking_, check_, hosts);
    row.subject = std::move(subject);
    row.verdict = verdict;
    return row;
  }

  void add_silent(const std::string& name, std::vector<CheckRow>& rows) const {
    const PortOfHosts& port = ports_.at(name);
    const std::vector<double> carried = port.carried();
    const double usual = summarize(carried).median;
    for (std::size_t host = 0; host < port.now.size(); ++host) {
      if (port.now[host] == nullptr) continue;
      const bool may_be_up = port.now[host]->may_be_up();
      const auto& sent = port.sent[host];
      if (may_be_up && sent && *sent >= kLeastPart * usual) continue;
      CheckRow& row =
          rows.emplace_back(about({static_cast<int>(host)},
                                  fmt::format("{} of {}", name, checking_.site.hosts[host]), Verdict::fail));
      const std::size_t others = carried.size() - (port.has_carried(host) ? 1 : 0);
      row.why =
          fmt::format("It is {} and {} while this ran; that port of {} sent {}.", state_text(*port.now[host]),
                      sent ? "sent " + bytes_text(*sent) : "does not say what it sent",
                      counted(static_cast<std::int64_t>(others), "other host"), bytes_text(usual));
      row.remedy = may_be_up
                       ? "See which ports the MPI of this host may use, and to this port's subnet and routes."
                       : "Check its cable, its transceiver and the switch's port.";
      if (!may_be_up || sent) continue;
      row.verdict = Verdict::inconclusive;
      row.remedy = "Reset the port's counters (perfquery -R), and run this check again.";
    }
  }

  CheckRow all_carried() const {
    CheckRow row = about(hosts_with(used_), "what ports sent", Verdict::pass);
    row.why = fmt::format("{} carried messages on each host that has {}.",
                          counted(static_cast<std::int64_t>(used_.size()), "port"),
                          used_.size() == 1 ? "it" : "them");
    return row;
  }

  CheckRow used_by_few(const std::string& name) const {
    const PortOfHosts& port = ports_.at(name);
    std::vector<std::string> few;
    for (std::size_t host = 0; host < port.sent.size(); ++host)
      if (port.has_carried(host)) few.push_back(checking_.site.hosts[host]);
    CheckRow row = about(hosts_with({name}), name, Verdict::shown);
    row.why = fmt::format("Of {} that {} it ({}), only {} sent messages by it, {}.",
                          counted(static_cast<std::int64_t>(row.hosts.size()), "host"),
                          row.hosts.size() == 1 ? "has" : "have", states_text(port), names_text(few),
                          bytes_text(summarize(port.carried()).median));
    row.remedy = fmt::format("They may be those of a file system. {}", kIfARail);
    return row;
  }

  CheckRow none_used() const {
    std::set<std::string> all;
    bool say_it = false;
    for (const auto& [name, port] : ports_) {
      all.insert(name);
      say_it = say_it || std::ranges::any_of(port.sent, [](const auto& sent) { return sent.has_value(); });
    }
    CheckRow row = about(hosts_with(all), "what ports sent", Verdict::shown);
    row.why = say_it ? "No InfiniBand or RoCE port carried messages while this ran, so these ports could not "
                       "be judged."
                     : "No port of InfiniBand or RoCE says how much it has sent.";
    row.remedy =
        "Run it with checks that measure, such as pairs.allreduce; where it did, see which network MPI uses.";
    return row;
  }

  CheckRow unused() const {
    std::set<std::string> names;
    std::vector<std::string> texts;
    for (const auto& [name, port] : ports_) {
      if (used_.contains(name) || used_by_few_.contains(name)) continue;
      names.insert(name);
      texts.push_back(fmt::format("{} ({})", name, states_text(port)));
    }
    CheckRow row = about(hosts_with(names), "unused ports", Verdict::shown);
    row.why = fmt::format(
        "{} carried almost nothing that could be counted, compared with {}.", fmt::join(texts, ", "),
        counted(static_cast<std::int64_t>(used_.size() + used_by_few_.size()), "other port"));
    row.remedy = kIfARail;
    return row;
  }

  std::vector<int> hosts_with(const std::set<std::string>& names) const {
    std::vector<int> hosts;
    for (int host = 0; host < static_cast<int>(checking_.site.hosts.size()); ++host)
      if (std::ranges::any_of(
              names, [&](const std::string& name) { return ports_.at(name).now[index(host)] != nullptr; }))
        hosts.push_back(host);
    return hosts;
  }

  const Checking& checking_;
  std::string_view check_;
  std::map<std::string, PortOfHosts> ports_;
  std::set<std::string> used_;         // that carried messages on many hosts
  std::set<std::string> used_by_few_;  // on one host, or less than half of them
};

}  // namespace

VerbsPorts read_verbs_ports(const fs::path& sys) {
  VerbsPorts found;
  const probe::Sysfs sysfs(sys);
  for (const auto& [device, pci] : sysfs.openfabrics_devices()) {
    for (const probe::PortState& port : sysfs.openfabrics_states(device)) {
      const fs::path folder = sys / "class/infiniband" / device / "ports" / std::to_string(port.number);
      found[fmt::format("{} port {}", device, port.number)] = {port.state, sent_by(folder)};
    }
  }
  return found;
}

std::string json_of(const VerbsPorts& ports) {
  json all = json::object();
  for (const auto& [name, port] : ports) {
    all[name] = {{"state", port.state}};
    if (port.sent) all[name]["sent"] = *port.sent;
  }
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

VerbsPorts verbs_ports_of(const std::string& text) {
  VerbsPorts ports;
  const json all = json::parse(text);
  for (const auto& [name, port] : all.items()) {
    ports[name].state = port.at("state").get<std::string>();
    if (port.contains("sent")) ports[name].sent = port.at("sent").get<std::uint64_t>();
  }
  return ports;
}

std::vector<CheckRow> judge_verbs_ports(const Checking& checking, std::string_view check,
                                        std::span<const VerbsPorts> before, std::span<const VerbsPorts> now) {
  const bool any = std::ranges::any_of(now, [](const VerbsPorts& ports) { return !ports.empty(); });
  if (now.size() < 2 || !any) return {};
  return VerbsJudge(checking, check, by_name(before, now)).rows();
}

}  // namespace polyring
