#include "bench/accept/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/statistics.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

/// Rows of several rounds that are equal in it become one.
using Subject = std::tuple<std::string, std::string, std::string, std::uint64_t>;

Subject subject_of(const CheckRow& row) { return {row.check, row.subject, row.quantity, row.size_bytes}; }

/// Where the rows of each subject are, the first one last. Several rows may be of one: they stand for each
/// other in their order.
std::map<Subject, std::vector<std::size_t>> places_of(std::span<const CheckRow> rows) {
  std::map<Subject, std::vector<std::size_t>> places;
  for (std::size_t i = rows.size(); i-- > 0;) places[subject_of(rows[i])].push_back(i);
  return places;
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
  std::vector<CheckRow> added;
  std::map<Subject, std::vector<std::size_t>> places = places_of(all);
  for (const CheckRow& now : round) {
    const auto of_subject = places.find(subject_of(now));
    if (of_subject == places.end() || of_subject->second.empty()) {
      CheckRow& row = added.emplace_back(now);
      row.why = with_round(now, number);
      add_median(row, now);
      continue;
    }
    CheckRow* const before = &all[of_subject->second.back()];
    of_subject->second.pop_back();
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
  all.insert(all.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
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
