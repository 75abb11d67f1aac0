// How what `accept` found becomes tables.
#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "reports/table_cells.hpp"
#include "reports/tables.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

using Check = std::vector<CheckRow>;

/// The least or largest median; empty where rows have other units, or none.
std::string extreme(const Check& check, bool largest) {
  std::optional<double> found;
  if (!all_alike(check, [](const CheckRow& row) { return row.unit; })) return "";
  for (const CheckRow& row : check) {
    if (!row.value) continue;
    const double median = row.value->median;
    found = !found ? median : largest ? std::max(*found, median) : std::min(*found, median);
  }
  return if_known(found, number);
}

/// The threshold of all rows; empty where they differ.
std::string common(const Check& check, std::optional<double> CheckRow::*threshold) {
  if (!all_alike(check, [&](const CheckRow& row) { return std::pair(row.*threshold, row.unit); })) return "";
  return if_known(check.front().*threshold, number);
}

std::string passed(const Check& check) {
  const auto judged =
      std::ranges::count_if(check, [](const CheckRow& row) { return is_judgement(row.verdict); });
  const auto good = std::ranges::count(check, Verdict::pass, &CheckRow::verdict);
  return judged == 0 ? "" : fmt::format("{} of {}", good, judged);
}

double seconds(const Check& check) {
  double sum = 0;
  for (const CheckRow& row : check) sum += row.seconds;
  return sum;
}

Verdict worst(const Check& check) {
  const bool judged =
      std::ranges::any_of(check, [](const CheckRow& row) { return is_judgement(row.verdict); });
  return judged ? overall(check) : check.front().verdict;
}

const RowColumns<Check>& check_columns() {
  using Of = const Check&;
  constexpr Align left = Align::left;
  constexpr Align right = Align::right;
  static const RowColumns<Check> all{
      {{"", "check", "", left}, [](Of of) { return of.front().check; }},
      {{"", "verdict", "", left}, [](Of of) { return verdict_text(worst(of)); }},
      {{"", "passed", "", right, 4}, [](Of of) { return passed(of); }},
      {{"", "quantity", "", left, 3}, [](Of of) { return of.front().quantity; }},
      {{"medians", "from", "", right, 3}, [](Of of) { return extreme(of, false); }},
      {{"medians", "to", "", right, 3}, [](Of of) { return extreme(of, true); }},
      {{"", "at least", "", right, 3}, [](Of of) { return common(of, &CheckRow::least); }},
      {{"", "at most", "", right, 3}, [](Of of) { return common(of, &CheckRow::most); }},
      {{"", "unit", "", left, 3},
       [](Of of) {
         return all_alike(of, [](const CheckRow& row) { return row.unit; }) ? of.front().unit : "";
       }},
      {{"", "took", "s", right, 2}, [](Of of) { return fmt::format("{:.1f}", seconds(of)); }},
      {{"", "source", "", left, 1}, [](Of of) { return std::string(to_text(of.front().source)); }},
  };
  return all;
}

const RowColumns<CheckRow>& judgement_columns() {
  using Row = const CheckRow&;
  constexpr Align left = Align::left;
  constexpr Align right = Align::right;
  static const RowColumns<CheckRow> all{
      {{"", "check", "", left}, [](Row row) { return row.check; }},
      {{"", "subject", "", left}, [](Row row) { return row.subject; }},
      {{"", "size", "B", right, 3},
       [](Row row) { return row.size_bytes > 0 ? std::to_string(row.size_bytes) : ""; }},
      {{"", "verdict", "", left}, [](Row row) { return verdict_text(row.verdict); }},
      {{"", "quantity", "", left, 3}, [](Row row) { return row.quantity; }},
      {{"", "median", "", right}, [](Row row) { return row.value ? number(row.value->median) : ""; }},
      {{"95 % interval", "from", "", right, 2},
       [](Row row) { return row.value ? number(row.value->ci_low) : ""; }},
      {{"95 % interval", "to", "", right, 2},
       [](Row row) { return row.value ? number(row.value->ci_high) : ""; }},
      {{"", "at least", "", right}, [](Row row) { return if_known(row.least, number); }},
      {{"", "at most", "", right}, [](Row row) { return if_known(row.most, number); }},
      {{"", "unit", "", left}, [](Row row) { return row.unit; }},
      {{"", "threshold from", "", left, 1}, [](Row row) { return row.threshold_source; }},
      {{"", "attempts", "", right, 1},
       [](Row row) { return row.attempts > 0 ? std::to_string(row.attempts) : ""; }},
      {{"", "source", "", left, 1}, [](Row row) { return std::string(to_text(row.source)); }},
  };
  return all;
}

/// One median of a row's trend.
struct MedianOfRow {
  const CheckRow& row;
  std::size_t number;  // from 0 on, of the rounds that measured it
};

const RowColumns<MedianOfRow>& trend_columns() {
  using Of = const MedianOfRow&;
  constexpr Align left = Align::left;
  constexpr Align right = Align::right;
  static const RowColumns<MedianOfRow> all{
      {{"", "check", "", left}, [](Of of) { return of.row.check; }},
      {{"", "subject", "", left}, [](Of of) { return of.row.subject; }},
      {{"", "size", "B", right, 3},
       [](Of of) { return of.row.size_bytes > 0 ? std::to_string(of.row.size_bytes) : ""; }},
      {{"", "quantity", "", left}, [](Of of) { return of.row.quantity; }},
      {{"", "measurement", "", right}, [](Of of) { return std::to_string(of.number + 1); }},
      {{"", "median", "", right}, [](Of of) { return number((*of.row.trend)[of.number]); }},
      {{"", "at least", "", right}, [](Of of) { return if_known(of.row.least, number); }},
      {{"", "at most", "", right}, [](Of of) { return if_known(of.row.most, number); }},
      {{"", "unit", "", left}, [](Of of) { return of.row.unit; }},
  };
  return all;
}

}  // namespace

Table trends_table(std::span<const CheckRow> rows) {
  Table table = table_of(trend_columns());
  for (const CheckRow& row : worst_first(rows)) {
    const std::size_t medians = row.trend ? row.trend->size() : 0;
    for (std::size_t number = 0; medians > 1 && number < medians; ++number)
      table.add_row(cells_of(trend_columns(), MedianOfRow{row, number}));
  }
  return table;
}

Table check_table(std::span<const CheckRow> rows) {
  Table table = table_of(check_columns());
  for (const Check& check : by_check(rows)) table.add_row(cells_of(check_columns(), check));
  return table;
}

Table judgement_table(std::span<const CheckRow> rows) {
  Table table = table_of(judgement_columns());
  for (const CheckRow& row : rows) table.add_row(cells_of(judgement_columns(), row));
  return table;
}

}  // namespace polyring
