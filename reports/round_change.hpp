// What a check of one more round has changed in the rows of `polyring accept --duration`. Rows of all rounds
// are not written again after each check: most only have one median more.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

struct PlacedRow {
  std::size_t at = 0;  // in the result
  CheckRow row;

  bool operator==(const PlacedRow&) const = default;
};

/// What a row has got that otherwise stays.
struct TrendPoint {
  std::size_t at = 0;              // in the result
  std::optional<double> median{};  // nothing: it was not measured
  int attempts = 0;                // of all rounds
  double seconds = 0;

  bool operator==(const TrendPoint&) const = default;
};

struct RoundChange {
  Rounds rounds{};  // with this check
  std::vector<PlacedRow> rows{};
  std::vector<TrendPoint> points{};

  bool operator==(const RoundChange&) const = default;
};

/// Whether the places are those of rows that the result has, or next to them.
bool fits(const ResultFile& result, const RoundChange& change);
/// The change must fit.
void apply(const RoundChange& change, ResultFile& result);

}  // namespace polyring
