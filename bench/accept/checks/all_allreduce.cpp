// all.allreduce: all hosts together, by each algorithm that was asked for; and whether that repeats.
#include <fmt/format.h>

#include <algorithm>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kAll = "all.allreduce";
constexpr std::string_view kRepeat = "repeatability";
/// The slowest of several rounds may take so much longer than the fastest.
constexpr double kMostApart = 1.25;
constexpr int kRepeats = 3;

CheckRow skipped(const Checking& checking, std::string_view check) {
  CheckRow row = row_of(checking, check, checking.site.all_hosts());
  row.verdict = Verdict::skipped;
  row.why = "One rank has nobody to reduce with.";
  return row;
}

std::vector<CheckRow> run_all(const Checking& checking) {
  if (checking.site.ranks_in_all() < 2) return {skipped(checking, kAll)};
  const HostGroupUnderTest group{checking.site.all_hosts(), "all hosts"};
  std::vector<CheckRow> rows;
  for (const std::string& algorithm : checking.options.algorithms) {
    const GroupWork work{.algorithm = algorithm,
                         .size = payload_for(checking, kAll, group.hosts),
                         .time = checking.options.turn};
    const Threshold threshold = checking.threshold({std::string(kAll), kBusbw, work.size.value, algorithm},
                                                   least_of(checking, group, work, std::nullopt, ""));
    Measured measured;
    CheckRow row = row_of(checking, kAll, group.hosts);
    do {
      checking.progress(algorithm);
      measure_at_once(checking, {group}, work, {&measured});
      judge_measured(row, measured, work.size, threshold);
    } while (measured.wrong == 0 && checking.must_repeat(row.verdict, measured.attempts, 1));
    row.subject = algorithm;
    if (row.verdict == Verdict::fail && row.remedy.empty())
      row.remedy =
          "See which hosts and pairs are slow; where none is, check the fabric's uplinks and routing.";
    rows.push_back(std::move(row));
  }
  return rows;
}

/// By how much the slowest round is slower than the fastest, at least and at most, by their intervals.
std::vector<CheckRow> run_repeat(const Checking& checking) {
  if (checking.site.ranks_in_all() < 2) return {skipped(checking, kRepeat)};
  const HostGroupUnderTest group{checking.site.all_hosts(), "all hosts"};
  const GroupWork work{.algorithm = checking.options.algorithm,
                       .size = payload_for(checking, kRepeat, group.hosts),
                       .time = checking.options.turn};
  std::vector<Measured> rounds(kRepeats);
  CheckRow row = row_of(checking, kRepeat, group.hosts);
  const Threshold threshold =
      checking.threshold({std::string(kRepeat), {"slowest/fastest", "", true}, work.size.value, "all hosts"},
                         {{}, kMostApart, "default"});
  for (int attempt = 1;; ++attempt) {
    for (int round = 0; round < kRepeats; ++round) {
      checking.progress(fmt::format("round {} of {}", round + 1, kRepeats));
      measure_at_once(checking, {group}, work, {&rounds[index(round)]});
    }
    double slowest = 0, slowest_low = 0, fastest = 0, fastest_high = 0, slowest_high = 0, fastest_low = 0;
    row.attempts = attempt * kRepeats;
    row.seconds = 0;
    std::uint64_t wrong = 0;
    for (const Measured& round : rounds) {
      wrong += round.wrong;
      row.seconds += round.seconds;
      if (round.busbw_GBps.empty()) continue;
      const Summary summary = summarize(round.busbw_GBps, kVerdictConfidence);
      if (slowest == 0 || summary.median < slowest)
        slowest = summary.median, slowest_low = summary.ci_low, slowest_high = summary.ci_high;
      if (summary.median > fastest)
        fastest = summary.median, fastest_low = summary.ci_low, fastest_high = summary.ci_high;
    }
    if (slowest_low == 0) {
      judge(row, {"slowest/fastest", "", true}, {}, threshold);
      fail_if_wrong(row, wrong);
      break;
    }
    const double low = std::max(1.0, fastest_low / slowest_high);
    judge(row, {"slowest/fastest", "", true},
          {low, fastest / slowest, std::max(fastest / slowest, fastest_high / slowest_low)}, threshold);
    fail_if_wrong(row, wrong);
    if (wrong > 0 || !checking.must_repeat(row.verdict, attempt, kRepeats)) break;
  }
  row.size_bytes = work.size.value;
  if (row.verdict == Verdict::fail && row.remedy.empty())
    row.remedy = "See what else uses these hosts and the network, and run this check again.";
  return {row};
}

int turns_all(const Site&, const CheckOptions& options) {
  return static_cast<int>(options.algorithms.size());
}
int turns_repeat(const Site&, const CheckOptions&) { return kRepeats; }

}  // namespace

const Check kAllAllreduce{kAll,      "all hosts together: the fabric, or what pairs do not show",
                          turns_all, {kBusbw},
                          run_all,   nullptr,
                          false,     kOnDevice};
const Check kRepeatability{kRepeat,      "all hosts together again: what changes from time to time",
                           turns_repeat, {{"slowest/fastest", "", true}},
                           run_repeat,   nullptr,
                           false,        kOnDevice};

}  // namespace polyring
