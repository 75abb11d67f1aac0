#include "bench/record/host_load.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/boot_id.hpp"
#include "base/control_groups.hpp"
#include "bench/record/cpu_clock.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

Seconds own_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(used.ru_utime) + seconds(used.ru_stime)};
}

/// The governor of all CPUs, from sysfs.
std::string governor() {
  std::set<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu", none)) {
    std::ifstream file(entry.path() / "cpufreq/scaling_governor");
    std::string name;
    if (file >> name) found.insert(name);
  }
  return found.empty() ? "" : found.size() > 1 ? "mixed" : *found.begin();
}

int online_cpus() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

/// All where more CPUs are possible than a cpu_set_t counts.
int allowed_cpus() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : online_cpus();
}

template <std::size_t n>
void copy_to(char (&to)[n], const std::string& text) {
  to[text.copy(to, n - 1)] = '\0';
}

/// Of the times of the same groups; 0 where the process was moved to others meanwhile.
double longest_rise(const std::vector<Seconds>& before, const std::vector<Seconds>& after) {
  double longest = 0;
  for (std::size_t group = 0; group < after.size() && before.size() == after.size(); ++group)
    longest = std::max(longest, after[group].value - before[group].value);
  return longest;
}

double not_negative(double value) { return std::max(0.0, value); }

/// "node0", "node0 and 3 more hosts".
std::string name_of(const std::vector<std::string>& hosts) {
  if (hosts.size() == 1) return hosts.front();
  return fmt::format("{} and {} more host{} of its machine", hosts.front(), hosts.size() - 1,
                     hosts.size() == 2 ? "" : "s");
}

HostConditions conditions_of(const std::vector<RankLoad>& ranks, const std::vector<std::string>& hosts) {
  // Ranks began and ended about the same time.
  const RankLoad& one = ranks.front();
  const double elapsed = std::max(one.elapsed_s, 1e-9);
  double own = 0;
  HostConditions conditions;
  conditions.host = name_of(hosts);
  conditions.ranks = static_cast<int>(ranks.size());
  conditions.cpus = one.cpus;
  conditions.least_cpus_of_rank = conditions.most_cpus_of_rank = one.allowed_cpus;
  for (const RankLoad& rank : ranks) {
    if (rank.first_of_process) own += rank.used.own.value;
    conditions.throttled_s = std::max(conditions.throttled_s, rank.throttled_s);
    conditions.least_cpus_of_rank = std::min(conditions.least_cpus_of_rank, rank.allowed_cpus);
    conditions.most_cpus_of_rank = std::max(conditions.most_cpus_of_rank, rank.allowed_cpus);
    if (rank.cpu_limit > 0)
      conditions.cpu_limit = std::min(conditions.cpu_limit.value_or(rank.cpu_limit), rank.cpu_limit);
    if (rank.clock_MHz <= 0) continue;
    conditions.least_clock_MHz =
        std::min(conditions.least_clock_MHz.value_or(rank.clock_MHz), rank.clock_MHz);
    conditions.most_clock_MHz = std::max(conditions.most_clock_MHz.value_or(0), rank.clock_MHz);
  }
  conditions.elapsed_s = one.elapsed_s;
  conditions.load_average = one.load_average;
  conditions.own_cpus = own / elapsed;
  conditions.other_cpus = not_negative(one.used.busy.value - own) / elapsed;
  conditions.stolen_cpus = not_negative(one.used.stolen.value) / elapsed;
  conditions.governor = one.governor;
  return conditions;
}

/// Shorter runs say nothing: the kernel counts in ticks of 10 ms for each CPU.
constexpr double kShortest_s = 0.5;
/// So much of one CPU is not worth a word.
constexpr double kLittle = 0.1;

}  // namespace

CpuUse cpu_use(const fs::path& root) {
  CpuUse use;
  use.own = own_time();
  // "cpu user nice system idle iowait irq softirq steal guest guest_nice", in ticks; see proc(5).
  std::ifstream file(root / "proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (file >> cpu >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    // Interrupts serve the ranks' own messages too, and may not be in their own time.
    use.busy = {(user + nice + system) / ticks};
    use.stolen = {steal / ticks};
  }
  return use;
}

std::vector<HostConditions> host_conditions(std::span<const RankLoad> ranks,
                                            std::span<const std::string> hosts) {
  std::vector<std::string> machines;  // in the order of their first ranks
  for (const RankLoad& rank : ranks) {
    if (std::ranges::find(machines, rank.machine) == machines.end()) machines.emplace_back(rank.machine);
  }
  std::vector<HostConditions> conditions;
  for (const std::string& machine : machines) {
    std::vector<RankLoad> its;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (machine != ranks[i].machine) continue;
      its.push_back(ranks[i]);
      if (std::ranges::find(names, hosts[i]) == names.end()) names.push_back(hosts[i]);
    }
    conditions.push_back(conditions_of(its, names));
  }
  return conditions;
}

std::vector<Doubt> doubts_of(std::span<const HostConditions> conditions) {
  std::vector<Doubt> found;
  for (const HostConditions& host : conditions) {
    if (host.elapsed_s < kShortest_s) continue;
    const int taken = std::min(host.ranks, host.cpus);
    if (host.other_cpus > host.cpus - taken + kLittle) {
      found.push_back({host.host,
                       fmt::format("other programs used {:.1f} of its {} CPUs while {} rank{} measured",
                                   host.other_cpus, host.cpus, host.ranks, host.ranks == 1 ? "" : "s"),
                       "measure again when nothing else runs"});
    }
    if (host.stolen_cpus > kLittle) {
      found.push_back({host.host,
                       fmt::format("its hypervisor gave the time of {:.1f} of its {} CPUs to others",
                                   host.stolen_cpus, host.cpus),
                       "measure on a machine of its own"});
    }
    if (host.throttled_s > 0) {
      found.push_back({host.host,
                       fmt::format("a control group's limit{} held the ranks back for {}",
                                   host.cpu_limit ? fmt::format(" of {:.3g} CPUs", *host.cpu_limit) : "",
                                   to_text(Seconds{host.throttled_s})),
                       "raise the limit, or use fewer ranks"});
    }
  }
  return found;
}

std::vector<std::string> doubts(std::span<const HostConditions> conditions) {
  std::vector<std::string> sentences;
  for (const Doubt& doubt : doubts_of(conditions))
    sentences.push_back(
        fmt::format("{}: {}, so that times are doubtful; {}", doubt.host, doubt.why, doubt.remedy));
  return sentences;
}

LoadWatch::LoadWatch() : before_(cpu_use("/")), throttled_before_(throttled_times("/")) {
  if (getloadavg(&load_average_, 1) != 1) load_average_ = 0;
}

std::vector<HostConditions> LoadWatch::conditions(const World& world) const {
  RankLoad own;
  own.clock_MHz = clock_MHz("/", sched_getcpu()).value_or(0);  // first: a CPU that waits slows down
  const CpuUse now = cpu_use("/");
  own.elapsed_s = std::chrono::duration<double>(Clock::now() - began_).count();
  own.used = {now.busy - before_.busy, now.stolen - before_.stolen, now.own - before_.own};
  own.throttled_s = longest_rise(throttled_before_, throttled_times("/"));
  own.load_average = load_average_;
  own.cpu_limit = cpu_limit("/").value_or(0);
  own.cpus = online_cpus();
  own.allowed_cpus = allowed_cpus();
  own.first_of_process = world.is_first_of_process();
  copy_to(own.machine, boot_id(world.host()));
  copy_to(own.governor, governor());
  std::vector<RankLoad> ranks;
  std::vector<std::string> hosts;
  for (const std::vector<std::byte>& bytes : world.gather(std::as_bytes(std::span(&own, 1))))
    std::memcpy(&ranks.emplace_back(), bytes.data(), sizeof(RankLoad));
  for (Rank rank = 0; rank < static_cast<Rank>(ranks.size()); ++rank) hosts.push_back(world.host(rank));
  return host_conditions(ranks, hosts);
}

}  // namespace polyring
