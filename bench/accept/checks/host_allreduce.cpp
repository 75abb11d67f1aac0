// host.allreduce: each host alone, compared with the others.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "host.allreduce";
/// Of a turn, where hosts share cores: what slows these for a while is to slow each of them as much.
constexpr int kSlices = 8;
/// What the slices of a host take, each with its own check, warm-up and fewest calls.
constexpr int kTurnsOfSlices = 2;

class HostsCheck {
 public:
  explicit HostsCheck(const Checking& checking) : checking_(checking), site_(checking.site) {
    work_.algorithm = checking.options.algorithm;
    work_.time = checking.options.turn;
    for (std::size_t host = 0; host < site_.hosts.size(); ++host) {
      const int number = static_cast<int>(host);
      if (site_.ranks[host].size() > 1) groups_.push_back({{number}, site_.hosts[host]});
    }
    measured_.resize(groups_.size());
    if (!groups_.empty()) work_.size = payload_for(checking, kName, groups_.front().hosts);
  }

  std::vector<CheckRow> run() {
    if (groups_.empty()) {
      CheckRow row = row_of(checking_, kName, {});
      row.verdict = Verdict::skipped;
      row.why = "No host has more than one rank.";
      return {row};
    }
    std::vector<std::size_t> unsure(groups_.size());
    for (std::size_t i = 0; i < unsure.size(); ++i) unsure[i] = i;
    std::vector<CheckRow> rows;
    for (int attempt = 1; !unsure.empty(); ++attempt) {
      measure(unsure);
      rows.clear();
      unsure.clear();
      const std::map<std::size_t, OfOthers> medians = medians_by_ranks();
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        rows.push_back(judged(i, medians));
        const int turns =
            site_.hosts_share_cores() ? kTurnsOfSlices * (static_cast<int>(unsure.size()) + 1) : 1;
        if (measured_[i].wrong == 0 && checking_.must_repeat(rows.back().verdict, attempt, turns))
          unsure.push_back(i);
      }
    }
    return rows;
  }

 private:
  void measure(const std::vector<std::size_t>& which) {
    std::vector<HostGroupUnderTest> groups;
    std::vector<Measured*> measured;
    for (const std::size_t i : which) {
      groups.push_back(groups_[i]);
      measured.push_back(&measured_[i]);
    }
    if (!site_.hosts_share_cores()) return measure_at_once(checking_, groups, work_, measured);
    GroupWork slice = work_;
    slice.time.value /= kSlices;
    slice.fewest = work_.fewest / kSlices + 1;
    for (int number = 0; number < kSlices; ++number) {
      for (std::size_t i = 0; i < groups.size(); ++i) {
        checking_.progress(groups[i].subject);
        const int attempts = measured[i]->attempts;
        measure_at_once(checking_, {groups[i]}, slice, {measured[i]});
        measured[i]->attempts = number == 0 ? attempts + 1 : attempts;
      }
    }
  }

  std::optional<double> median(std::size_t i) const {
    const std::vector<double>& samples = measured_[i].busbw_GBps;
    return samples.empty() ? std::nullopt : std::optional(summarize(samples).median);
  }
  std::size_t ranks(std::size_t i) const { return site_.ranks[index(groups_[i].hosts[0])].size(); }

  /// Of hosts with so many ranks, as they are measured so far.
  std::map<std::size_t, OfOthers> medians_by_ranks() const {
    std::map<std::size_t, std::vector<double>> medians;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (const auto own = median(i)) medians[ranks(i)].push_back(*own);
    std::map<std::size_t, OfOthers> of_others;
    for (auto& [number, values] : medians) of_others.emplace(number, OfOthers(std::move(values)));
    return of_others;
  }

  CheckRow judged(std::size_t i, const std::map<std::size_t, OfOthers>& medians) const {
    const auto of_hosts = medians.find(ranks(i));
    const std::optional<double> of_others =
        of_hosts == medians.end() ? std::nullopt : of_hosts->second.median(median(i));
    const Threshold otherwise = least_of(checking_, groups_[i], work_, of_others, "the other hosts");
    const Threshold threshold =
        checking_.threshold({std::string(kName), kBusbw, work_.size.value, groups_[i].subject}, otherwise);
    CheckRow row = row_of(checking_, kName, groups_[i].hosts);
    judge_measured(row, measured_[i], work_.size, threshold);
    if (row.verdict == Verdict::fail && row.remedy.empty())
      row.remedy = "Check the links inside this host, its memory, clocks and load.";
    return row;
  }

  const Checking& checking_;
  const Site& site_;
  GroupWork work_;
  std::vector<HostGroupUnderTest> groups_;
  std::vector<Measured> measured_;
};

int turns(const Site& site, const CheckOptions&) {
  return site.hosts_share_cores() ? kTurnsOfSlices * static_cast<int>(site.hosts.size()) : 1;
}

std::vector<CheckRow> run(const Checking& checking) { return HostsCheck(checking).run(); }

}  // namespace

const Check kHostAllreduce{
    kName,    "each host alone: slow links, memory or cores inside it", turns, {kBusbw}, run, nullptr, false,
    kOnDevice};

}  // namespace polyring
