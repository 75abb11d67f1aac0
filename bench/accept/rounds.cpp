#include "bench/accept/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/statistics.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

bool is_same(const CheckRow& a, const CheckRow& b) {
  return a.check == b.check && a.subject == b.subject && a.quantity == b.quantity &&
         a.size_bytes == b.size_bytes;
}

bool is_worse(const CheckRow& a, const CheckRow& b) {
  const std::vector<CheckRow> both{b, a};
  const Verdict of_both = overall(both);
  return of_both != b.verdict && of_both == a.verdict;
}

void add_median(CheckRow& row, const CheckRow& measured) {
  if (!row.trend) row.trend.emplace();
  if (measured.value) row.trend->push_back(measured.value->median);
}

std::string with_round(const CheckRow& row, int number) {
  return row.verdict == Verdict::pass ? row.why : fmt::format("Round {}: {}", number, row.why);
}

}  // namespace

void add_round(std::vector<CheckRow>& all, std::span<const CheckRow> round, int number) {
  // Several rows may be of one subject: they stand for each other in their order.
  std::vector<bool> taken(all.size());
  for (const CheckRow& now : round) {
    const auto before = std::ranges::find_if(all, [&](const CheckRow& row) {
      return !taken[static_cast<std::size_t>(&row - all.data())] && is_same(row, now);
    });
    if (before != all.end()) taken[static_cast<std::size_t>(before - all.begin())] = true;
    if (before == all.end()) {
      taken.push_back(true);
      CheckRow& row = all.emplace_back(now);
      row.why = with_round(now, number);
      add_median(row, now);
      continue;
    }
    if (before->value) before->value->samples.clear();
    add_median(*before, now);
    const bool always_passed = before->verdict == Verdict::pass && now.verdict == Verdict::pass;
    if (!always_passed && !is_worse(now, *before)) {
      before->attempts += now.attempts;
      before->seconds += now.seconds;
      continue;
    }
    CheckRow row = now;
    row.why = with_round(now, number);
    row.trend = std::move(before->trend);
    row.attempts += before->attempts;
    row.seconds += before->seconds;
    if (number > 1 && row.value) row.value->samples.clear();
    *before = std::move(row);
  }
}

RoundChange change_of(std::span<const CheckRow> before, std::span<const CheckRow> after, Rounds rounds) {
  RoundChange change;
  change.rounds = std::move(rounds);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const CheckRow& row = after[i];
    if (i >= before.size() || row.verdict != before[i].verdict) {
      change.rows.push_back(PlacedRow{i, row});
      continue;
    }
    const std::size_t medians = before[i].trend ? before[i].trend->size() : 0;
    const bool measured = row.trend && row.trend->size() > medians;
    if (!measured && row.attempts == before[i].attempts && row.seconds == before[i].seconds) continue;
    change.points.push_back(
        TrendPoint{i, measured ? std::optional(row.trend->back()) : std::nullopt, row.attempts, row.seconds});
  }
  return change;
}

RoundChange change_of(std::span<const CheckRow> after, Rounds rounds) {
  return change_of({}, after, std::move(rounds));
}

bool is_over(const Rounds& rounds, Seconds duration) {
  return rounds.whole > 0 && rounds.checks.empty() &&
         rounds.seconds + rounds.seconds / rounds.whole > duration.value;
}

std::vector<std::string> drifts(std::span<const CheckRow> rows) {
  constexpr std::size_t kFewest = 6;
  constexpr std::size_t kMost = 5;
  constexpr double kWorth = 0.05;
  std::vector<std::pair<double, std::string>> found;
  for (const CheckRow& row : rows) {
    if (!row.trend || row.trend->size() < kFewest) continue;
    const std::span<const double> trend(*row.trend);
    const std::size_t third = trend.size() / 3;
    const double first = summarize(trend.first(third)).median;
    const double last = summarize(trend.last(third)).median;
    if (!(first > 0)) continue;
    const bool less_is_worse = row.least || !row.most;
    const double worse = less_is_worse ? 1 - last / first : last / first - 1;
    if (worse <= kWorth) continue;
    found.emplace_back(
        worse, fmt::format("{} of {}: its {} {} by {:.0f} % from the first third of {} rounds to the last.",
                           row.check, row.subject, row.quantity, less_is_worse ? "fell" : "rose", 100 * worse,
                           trend.size()));
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < std::min(found.size(), kMost); ++i) sentences.push_back(found[i].second);
  if (found.size() > kMost)
    sentences.push_back(fmt::format("{} more drifted likewise.", found.size() - kMost));
  return sentences;
}

}  // namespace polyring
