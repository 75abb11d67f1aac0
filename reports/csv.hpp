// Comma-separated values, for spreadsheets and other programs.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "reports/result.hpp"

namespace polyring {

/// One line, its end included; cells are quoted where RFC 4180 asks for that.
std::string csv_line(std::span<const std::string> cells);

/// Rows of results at full precision. The columns are the keys of the JSON, which have the units; a time has
/// one for each member, as time_us_median and time_us_p99, with the number of its samples. Other lists are
/// left out. A cell is empty where there is no value.
std::string csv_head(const Rows& rows);
/// The rows from `begin` on.
std::string csv_body(const Rows& rows, std::size_t begin = 0);

}  // namespace polyring
