// What the tables of all kinds of rows share: columns that know their cells, and how a cell is written.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/tables.hpp"

namespace polyring {

/// A column of a table, with what a row has in it. A new column is one of these, and a key in
/// result_fields.hpp where it comes from a file.
template <typename Row>
struct RowColumn {
  Column column;
  std::function<std::string(const Row&)> text;
};

template <typename Row>
using RowColumns = std::vector<RowColumn<Row>>;

template <typename Row>
Table table_of(const RowColumns<Row>& columns) {
  std::vector<Column> heads;
  for (const RowColumn<Row>& column : columns) heads.push_back(column.column);
  return Table(std::move(heads));
}

template <typename Row>
std::vector<std::string> cells_of(const RowColumns<Row>& columns, const Row& row) {
  std::vector<std::string> cells;
  for (const RowColumn<Row>& column : columns) cells.push_back(column.text(row));
  return cells;
}

/// Four significant digits, at most three decimals.
inline std::string number(double value) {
  const int magnitude =
      value > 0 && std::isfinite(value) ? static_cast<int>(std::floor(std::log10(value))) : 0;
  return fmt::format("{:.{}f}", value, std::clamp(3 - magnitude, 0, 3));
}

/// One decimal, without the sign.
inline std::string percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }

inline std::string wrong_text(const std::optional<std::uint64_t>& wrong) {
  return wrong ? std::to_string(*wrong) : "N/A";  // as nccl-tests says it
}

/// Empty when there is no value.
template <typename T, typename Format>
std::string if_known(const std::optional<T>& value, Format format) {
  return value ? format(*value) : "";
}

/// What a caption must add when there are fewer samples than an interval of 95 % takes, see median_ranks();
/// else empty.
inline std::string interval_caveat(const auto& rows, const auto& timing_of) {
  const bool any_short = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    const std::size_t samples = timing_of(row).samples.size();
    return samples > 0 && samples < 6;
  });
  return any_short ? "with fewer than 6 samples the interval is from the least to the largest, and covers "
                     "less than 95 %"
                   : "";
}

/// Joins two parts of a caption, either of which may be empty.
inline std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + "; " + second;
}

/// Whether `text_of` gives the same for all; yes for none.
bool all_alike(const auto& range, const auto& text_of) {
  return std::all_of(range.begin(), range.end(),
                     [&](const auto& item) { return text_of(item) == text_of(range.front()); });
}

}  // namespace polyring
