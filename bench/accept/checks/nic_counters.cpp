// nic.counters: errors that ports count, what TCP sends again, and whether ports of InfiniBand and RoCE carry
// messages, from the first check to the last.
#include "bench/accept/nic_counters.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"
#include "bench/accept/verbs_ports.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "nic.counters";
const Quantity kErrors{"errors", "", true, true};
const Quantity kAgain{"retransmitted", "%", true, true};
constexpr double kMostErrors = 0;
constexpr double kMostAgain = 1;
/// Of fewer segments a part says nothing.
constexpr std::uint64_t kFewestSegments = 1000;

constexpr const char* kCounters = "counters";
constexpr const char* kVerbs = "verbs";  // json_of() the ports

std::string answer(const std::string&) {
  return nlohmann::json{{kCounters, read_nic_counters("/")}, {kVerbs, json_of(read_verbs_ports("/sys"))}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct OfHost {
  NicCounters counters{};
  VerbsPorts verbs{};
};

OfHost read(const std::vector<HostReply>& replies, std::size_t host) {
  if (host >= replies.size() || replies[host].text.empty()) return {};
  const nlohmann::json said = nlohmann::json::parse(replies[host].text);
  return {said.at(kCounters).get<NicCounters>(), verbs_ports_of(said.value(kVerbs, "{}"))};
}

/// Of either time; empty: both were read.
std::string why_unread(const std::vector<HostReply>& before, const std::vector<HostReply>& now,
                       std::size_t host) {
  for (const auto* replies : {&before, &now})
    if (host < replies->size() && !(*replies)[host].error.empty()) return (*replies)[host].error;
  return "";
}

class HostCounters {
 public:
  HostCounters(const Checking& checking, int host, const NicCounters& before, const NicCounters& after)
      : checking_(checking), host_(host), before_(before), ports_(after), grown_(grown(before, after)) {
    ports_.erase(kTcp);
  }

  std::vector<CheckRow> rows() {
    std::vector<CheckRow> rows;
    const auto tcp = tcp_row();
    grown_.erase(kTcp);
    for (const auto& [port, counters] : grown_) rows.push_back(port_row(port, counters));
    for (const auto& [port, counters] : before_)
      if (port != kTcp && !ports_.contains(port)) rows.push_back(gone_row(port));
    for (const auto& [port, counters] : ports_)
      for (const auto& [name, value] : counters)
        if (is_full(name, value)) rows.push_back(full_row(port, name));
    if (rows.empty() && !ports_.empty()) rows.push_back(clean_row());
    if (tcp) rows.push_back(*tcp);
    if (!rows.empty()) return rows;
    CheckRow& row = rows.emplace_back(row_of(checking_, kName, {host_}));
    row.verdict = Verdict::skipped;
    row.why = "Neither counters of a port nor enough of TCP's segments are there to read.";
    return rows;
  }

 private:
  CheckRow port_row(const std::string& port, const std::map<std::string, std::uint64_t>& counters) const {
    CheckRow row = row_of_port(port);
    std::vector<std::string> texts;
    double sum = 0;
    bool all_of_loss = true;
    for (const auto& [name, by] : counters) {
      texts.push_back(fmt::format("{} by {}", name, by));
      sum += static_cast<double>(by);
      all_of_loss = all_of_loss && tells_of_loss(name);
    }
    judge(row, kErrors, {sum},
          checking_.threshold({std::string(kName), kErrors, 0, row.subject}, {{}, kMostErrors, "default"}));
    row.why = fmt::format("Counters grew while this ran: {}.", fmt::join(texts, ", "));
    if (row.verdict == Verdict::fail)
      row.remedy = all_of_loss
                       ? "Packets were lost: check flow control (PFC, ECN) and the buffers of the switches."
                       : "Exchange the cable or transceiver of this port, and then check the switch's port.";
    return row;
  }

  CheckRow row_of_port(const std::string& port) const {
    CheckRow row = row_of(checking_, kName, {host_});
    row.subject = fmt::format("{} of {}", port, row.subject);
    return row;
  }

  CheckRow gone_row(const std::string& port) const {
    CheckRow row = row_of_port(port);
    row.verdict = Verdict::fail;
    row.why = "It was there when this run began, and is no more.";
    row.remedy = "Check its driver and its slot: the system's log says when it went.";
    return row;
  }

  CheckRow full_row(const std::string& port, const std::string& counter) const {
    CheckRow row = row_of_port(port);
    row.verdict = Verdict::inconclusive;
    row.why = fmt::format("{} is at its highest value, so further errors would not be counted.", counter);
    row.remedy = "Reset the port's counters (perfquery -R), and run this check again.";
    return row;
  }

  CheckRow clean_row() const {
    std::vector<std::string> names;
    for (const auto& [port, counters] : ports_) names.push_back(port);
    CheckRow row = row_of(checking_, kName, {host_});
    judge(row, kErrors, {0},
          checking_.threshold({std::string(kName), kErrors, 0, row.subject}, {{}, kMostErrors, "default"}));
    row.why = fmt::format("No counter of errors grew on {}.", fmt::join(names, ", "));
    return row;
  }

  /// Nothing where TCP has sent next to nothing. Shapers of emulated hosts drop packets on purpose.
  std::optional<CheckRow> tcp_row() const {
    const auto at = grown_.find(kTcp);
    if (at == grown_.end()) return std::nullopt;
    const auto by = [&](const char* name) {
      const auto counter = at->second.find(name);
      return counter == at->second.end() ? 0 : counter->second;
    };
    const std::uint64_t sent = by("OutSegs");
    if (sent < kFewestSegments) return std::nullopt;
    const double again = 100 * static_cast<double>(by("RetransSegs")) / static_cast<double>(sent);
    CheckRow row = row_of(checking_, kName, {host_});
    row.subject = fmt::format("TCP of {}", row.subject);
    const Judged judged{std::string(kName), kAgain, 0, row.subject};
    const Threshold threshold = checking_.threshold(judged, {{}, kMostAgain, "default"});
    judge(row, kAgain, {again}, threshold);
    if (checking_.site.source == Source::emulated) {
      row.verdict = Verdict::skipped;
      row.most = row.least = std::nullopt;
      row.threshold_source.clear();
      row.why = fmt::format("{:.2g} % of {} were sent again, as shapers of emulated hosts drop some.", again,
                            counted(static_cast<std::int64_t>(sent), "segment"));
    } else if (row.verdict == Verdict::fail) {
      row.remedy = "See which link or switch drops packets: ethtool -S, and the switches' counters.";
    }
    return row;
  }

  const Checking& checking_;
  int host_;
  const NicCounters& before_;
  NicCounters ports_;
  NicCounters grown_;
};

std::vector<CheckRow> run(const Checking& checking) {
  const std::vector<HostReply> now = checking.measurer.ask(std::string(kName), "");
  std::vector<CheckRow> rows;
  std::vector<VerbsPorts> verbs_before(checking.site.hosts.size());
  std::vector<VerbsPorts> verbs_now(checking.site.hosts.size());
  for (std::size_t host = 0; host < checking.site.hosts.size(); ++host) {
    if (const std::string why = why_unread(checking.before, now, host); !why.empty()) {
      CheckRow& row = rows.emplace_back(row_of(checking, kName, {static_cast<int>(host)}));
      row.verdict = Verdict::error;
      row.why = fmt::format("Its counters could not be read: {}.", why);
      row.remedy = "Check /sys on this host.";
      continue;
    }
    OfHost before = read(checking.before, host);
    OfHost after = read(now, host);
    const std::vector<CheckRow> more =
        HostCounters(checking, static_cast<int>(host), before.counters, after.counters).rows();
    rows.insert(rows.end(), more.begin(), more.end());
    verbs_before[host] = std::move(before.verbs);
    verbs_now[host] = std::move(after.verbs);
  }
  const std::vector<CheckRow> of_verbs = judge_verbs_ports(checking, kName, verbs_before, verbs_now);
  rows.insert(rows.end(), of_verbs.begin(), of_verbs.end());
  return rows;
}

int turns(const Site&, const CheckOptions&) { return 0; }

}  // namespace

const Check kNicCounters{
    kName,
    "errors of ports, what TCP sends again, and ports of verbs that carry nothing, while the others ran",
    turns,
    {kErrors, kAgain},
    run,
    answer,
    true};

}  // namespace polyring
