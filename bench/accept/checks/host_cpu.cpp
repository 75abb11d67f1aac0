// host.cpu: what holds back the CPUs of hosts: other programs, limits, heat.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/cpu_limits.hpp"
#include "bench/accept/groups.hpp"
#include "bench/record/host_load.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "host.cpu";

std::string answer(const std::string&) {
  const CpuLimits limits = read_cpu_limits("/");
  return nlohmann::json{{"cpus", limits.cpus},
                        {"limited", limits.limited},
                        {"least_MHz", limits.least_MHz},
                        {"could_MHz", limits.could_MHz},
                        {"throttled", limits.throttled}}
      .dump();
}

/// Nothing where the host did not say.
std::optional<CpuLimits> read(const std::vector<HostReply>& replies, std::size_t host) {
  if (host >= replies.size() || replies[host].text.empty()) return std::nullopt;
  const nlohmann::json from = nlohmann::json::parse(replies[host].text);
  return CpuLimits{from.at("cpus"), from.at("limited"), from.at("least_MHz"), from.at("could_MHz"),
                   from.at("throttled")};
}

/// The governor that more than half of the machines have; empty where there is none.
std::string usual_governor(const std::vector<HostConditions>& conditions) {
  std::map<std::string, std::size_t> count;
  for (const HostConditions& host : conditions) ++count[host.governor];
  const auto most = std::ranges::max_element(count, {}, [](const auto& one) { return one.second; });
  return most != count.end() && 2 * most->second > conditions.size() ? most->first : "";
}

/// Load that does not matter beside all that the host can do: its times are judged by intervals.
bool matters(const HostConditions& host) {
  constexpr double kPart = 0.02;
  const double more = host.other_cpus - std::max(0, host.cpus - host.ranks);  // than the ranks leave
  return more > kPart * host.cpus || host.stolen_cpus > kPart * host.cpus ||
         host.throttled_s > kPart * host.elapsed_s;
}

/// Clocks that are limited make a host slow; load makes what is measured beside it doubtful.
std::vector<CheckRow> run(const Checking& checking) {
  const std::vector<HostConditions> conditions = checking.measurer.conditions();
  const std::vector<HostReply> now = checking.measurer.ask(std::string(kName), "");
  const std::vector<std::string>& hosts = checking.site.hosts;
  const std::string usual = usual_governor(conditions);
  std::vector<CheckRow> rows;
  for (const HostConditions& host : conditions) {
    // Several hosts of one machine are named after the first.
    const std::string first = host.host.substr(0, host.host.find(' '));
    const auto number = static_cast<std::size_t>(std::ranges::find(hosts, first) - hosts.begin());
    CheckRow& row = rows.emplace_back(row_of(checking, kName, {}));
    row.subject = host.host;
    row.hosts = {first};
    row.verdict = Verdict::pass;
    row.why = "Its clocks were not limited, and nothing else used its CPUs much.";
    const auto limits = read(now, number);
    const auto before = read(checking.before, number);
    std::vector<std::string> why;
    if (limits && limits->limited > 0)
      why.push_back(fmt::format("{} of its {} CPUs may run at {:.0f} MHz at most, and can do {:.0f}",
                                limits->limited, limits->cpus, limits->least_MHz, limits->could_MHz));
    if (limits && before && limits->throttled > before->throttled)
      why.push_back(fmt::format("heat has slowed its CPUs down {} times while this ran",
                                limits->throttled - before->throttled));
    if (!host.governor.empty() && !usual.empty() && host.governor != usual)
      why.push_back(fmt::format("its governor is {}, and that of most hosts {}", host.governor, usual));
    if (!why.empty()) {
      row.verdict = Verdict::fail;
      row.why = as_sentence(fmt::format("{}", fmt::join(why, "; ")));
      row.remedy = "Set its governor and limits of frequency (cpupower), and check its cooling and power.";
      continue;
    }
    const std::vector<Doubt> doubts = doubts_of(std::span(&host, 1));
    if (doubts.empty() || !matters(host)) continue;
    row.verdict = Verdict::inconclusive;
    for (const Doubt& doubt : doubts) why.push_back(doubt.why);
    row.why =
        as_sentence(fmt::format("{}: times measured beside it cannot be trusted", fmt::join(why, "; ")));
    row.remedy = as_sentence(doubts.front().remedy);
    // These share one machine's cores, with shapers too, on purpose.
    if (checking.site.source == Source::emulated) row.verdict = Verdict::skipped;
  }
  if (!rows.empty()) return rows;
  CheckRow& row = rows.emplace_back(row_of(checking, kName, {}));
  row.verdict = Verdict::skipped;
  row.why = "Nothing is known of the hosts' CPUs.";
  return rows;
}

int turns(const Site&, const CheckOptions&) { return 0; }

}  // namespace

const Check kHostCpu{
    kName, "load by other programs, limits and heat that hold CPUs back", turns, {}, run, answer, true};

}  // namespace polyring
