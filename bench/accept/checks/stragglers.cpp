// stragglers: ranks that take longer than the others for the same piece of computing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/index.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "stragglers";
const Quantity kQuantity{"time/median rank's", "", true};
constexpr double kMost = 1.1;
constexpr int kTimes = 192;
constexpr int kTurns = 8;  // so that a piece is longer than the time between interruptions that slow a rank
constexpr double kPieces = 2.5;  // that each time takes, see Measurer::compute_us()

/// The median of what the ranks took this time: what slows all of them for a while says nothing of one. Of an
/// even number the lower one: where half of the ranks are slow, these are to be found.
double usual_us(const std::vector<std::vector<double>>& us, std::size_t time) {
  std::vector<double> of_ranks;
  for (const std::vector<double>& of_rank : us) of_ranks.push_back(of_rank.at(time));
  std::ranges::sort(of_ranks);
  return of_ranks[(of_ranks.size() - 1) / 2];
}

std::vector<CheckRow> run(const Checking& checking) {
  const Site& site = checking.site;
  // Where ranks compute one after the other, each has its part of the turn.
  const int ranks = site.ranks_in_all();
  const double ranks_at_a_time =
      site.hosts_share_cores() ? ranks : static_cast<double>(ranks) / static_cast<double>(site.hosts.size());
  const Seconds piece{
      std::clamp(kTurns * checking.options.turn.value / (kPieces * kTimes * ranks_at_a_time), 0.5e-3, 10e-3)};
  std::vector<std::vector<double>> ratios(index(ranks));
  std::vector<CheckRow> rows;
  const auto begin = std::chrono::steady_clock::now();
  for (int attempt = 1;; ++attempt) {
    checking.progress("the same computing on all ranks");
    const std::vector<std::vector<double>> more = checking.measurer.compute_us(piece, kTimes);
    for (std::size_t time = 0; time < more.front().size(); ++time) {
      const double usual = usual_us(more, time);
      for (std::size_t rank = 0; rank < ratios.size(); ++rank)
        ratios[rank].push_back(more[rank][time] / usual);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rows.clear();
    for (std::size_t host = 0; host < site.hosts.size(); ++host) {
      for (const Rank rank : site.ranks[host]) {
        CheckRow& row = rows.emplace_back(row_of(checking, kName, {static_cast<int>(host)}));
        row.subject = fmt::format("rank {} on {}", rank, site.hosts[host]);
        judge(row, kQuantity, ratios[index(rank)],
              checking.threshold({std::string(kName), kQuantity, 0, row.subject}, {{}, kMost, "default"}));
        row.attempts = attempt;
        row.seconds = took.count() / ranks;
        if (row.verdict == Verdict::fail)
          row.remedy = "Check the clocks, cooling, binding and load of this rank's processor.";
      }
    }
    if (std::ranges::none_of(
            rows, [&](const CheckRow& row) { return checking.must_repeat(row.verdict, attempt, kTurns); }))
      break;
  }
  return rows;
}

int turns(const Site&, const CheckOptions&) { return kTurns; }

}  // namespace

const Check kStragglers{kName, "ranks that compute more slowly than the others", turns, {kQuantity}, run};

}  // namespace polyring
