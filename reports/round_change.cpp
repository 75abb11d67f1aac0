#include "reports/round_change.hpp"

namespace polyring {

bool fits(const ResultFile& result, const RoundChange& change) {
  const auto* const all = std::get_if<std::vector<CheckRow>>(&result.rows);
  if (all == nullptr) return false;
  std::size_t size = all->size();
  for (const PlacedRow& one : change.rows) {
    if (one.at > size) return false;
    size += one.at == size ? 1 : 0;
  }
  for (const TrendPoint& point : change.points)
    if (point.at >= size) return false;
  return true;
}

void apply(const RoundChange& change, ResultFile& result) {
  auto& all = std::get<std::vector<CheckRow>>(result.rows);
  for (const PlacedRow& one : change.rows) {
    if (one.at == all.size()) all.emplace_back();
    all[one.at] = one.row;
  }
  for (const TrendPoint& point : change.points) {
    CheckRow& row = all[point.at];
    if (!row.trend) row.trend.emplace();
    if (point.median) row.trend->push_back(*point.median);
    row.attempts = point.attempts;
    row.seconds = point.seconds;
  }
  result.rounds = change.rounds;
}

}  // namespace polyring
