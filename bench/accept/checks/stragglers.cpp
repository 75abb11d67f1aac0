// stragglers: ranks that take longer than the others for the same piece of computing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/index.hpp"
#include "base/statistics.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "stragglers";
const Quantity kQuantity{"time/median rank's", "", true};
constexpr double kMost = 1.1;
constexpr int kTimes = 16;

std::vector<CheckRow> run(const Checking& checking) {
  const Site& site = checking.site;
  // Where ranks compute one after the other, each has its part of the turn.
  const int ranks = site.ranks_in_all();
  const double ranks_at_a_time =
      site.hosts_share_cores() ? ranks : static_cast<double>(ranks) / static_cast<double>(site.hosts.size());
  const Seconds piece{std::clamp(checking.options.turn.value / (kTimes * ranks_at_a_time), 0.5e-3, 10e-3)};
  std::vector<std::vector<double>> us(index(ranks));
  std::vector<CheckRow> rows;
  const auto begin = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    checking.progress("the same computing on all ranks");
    const std::vector<std::vector<double>> more = checking.measurer.compute_us(piece, kTimes);
    std::vector<double> medians;
    for (std::size_t rank = 0; rank < us.size(); ++rank) {
      us[rank].insert(us[rank].end(), more[rank].begin(), more[rank].end());
      medians.push_back(summarize(us[rank]).median);
    }
    // Of an even number the lower one: where half of the ranks are slow, these are to be found.
    std::ranges::sort(medians);
    const double usual = medians[(medians.size() - 1) / 2];
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rows.clear();
    for (std::size_t host = 0; host < site.hosts.size(); ++host) {
      for (const Rank rank : site.ranks[host]) {
        std::vector<double> ratios;
        for (const double one : us[index(rank)]) ratios.push_back(one / usual);
        CheckRow& row = rows.emplace_back(row_of(checking, kName, {static_cast<int>(host)}));
        row.subject = fmt::format("rank {} on {}", rank, site.hosts[host]);
        judge(row, kQuantity, std::move(ratios),
              checking.threshold({std::string(kName), kQuantity, 0, row.subject}, {{}, kMost, "default"}));
        row.attempts = attempt;
        row.seconds = took.count() / ranks;
        if (row.verdict == Verdict::fail)
          row.remedy = "See to the clocks, cooling, binding and load of this rank's processor.";
      }
    }
    const bool clear =
        std::ranges::none_of(rows, [](const CheckRow& row) { return row.verdict == Verdict::inconclusive; });
    if (clear || !checking.may_repeat(attempt)) break;
  }
  return rows;
}

int turns(const Site&, const CheckOptions&) { return 1; }

}  // namespace

const Check kStragglers{kName, "ranks that compute more slowly than the others", turns, {kQuantity}, run};

}  // namespace polyring
