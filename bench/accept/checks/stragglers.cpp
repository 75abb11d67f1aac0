// stragglers: ranks that take longer than the others for the same piece of computing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "base/index.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "stragglers";
const Quantity kQuantity{"time/median rank's", "", true};
constexpr double kMost = 1.1;
constexpr std::size_t kBlock = 8;
constexpr int kTimes = 16 * kBlock;
constexpr int kTurns = 8;  // so that a piece is longer than the time between interruptions that slow a rank
constexpr double kPieces = 2.5;  // that each time takes, see Measurer::compute_us()

/// The lower quartile of a block of pieces. What else a processor does lengthens pieces, some by half; what a
/// rank is late by is in all of them.
double block_us(std::span<const double> pieces) {
  std::vector<double> us(pieces.begin(), pieces.end());
  std::ranges::sort(us);
  return us[(us.size() - 1) / 4];
}

/// Of the ranks' blocks at the same time: what slows all of them for a while says nothing of one. Of an even
/// number the lower one of the middle: where half of the ranks are slow, these are to be found.
double usual_us(std::vector<double> of_ranks) {
  std::ranges::sort(of_ranks);
  return of_ranks[(of_ranks.size() - 1) / 2];
}

/// Adds what each rank took for each block beside what is usual.
void add_ratios(std::vector<std::vector<double>>& ratios, const std::vector<std::vector<double>>& us) {
  for (std::size_t first = 0; first < us.front().size(); first += kBlock) {
    std::vector<double> of_ranks;
    for (const std::vector<double>& of_rank : us)
      of_ranks.push_back(block_us(std::span(of_rank).subspan(first, kBlock)));
    const double usual = usual_us(of_ranks);
    for (std::size_t rank = 0; rank < ratios.size(); ++rank) ratios[rank].push_back(of_ranks[rank] / usual);
  }
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
    add_ratios(ratios, checking.measurer.compute_us(piece, kTimes));
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
          row.remedy = "See to the clocks, cooling, binding and load of this rank's processor.";
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
