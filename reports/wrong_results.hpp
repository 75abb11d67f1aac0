// What a result says of wrong results: in its rows, and in notes where no row has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

/// How such a note begins: a contender of ours that was wrong has no row, and others' logs may say of a whole
/// table that something in it is wrong.
inline constexpr std::string_view kWrongResults = "Wrong results";

/// The note of a contender that was wrong, and was therefore not timed; `row` has no time.
std::string wrong_note(const CollectiveRow& row);

struct WrongResults {
  std::size_t rows = 0;              // that have wrong elements
  std::size_t of = 0;                // so many
  std::vector<std::string> notes{};  // without "Wrong results: " before them
  bool any() const { return rows > 0 || !notes.empty(); }
};

WrongResults wrong_results(const ResultFile& result);

}  // namespace polyring
