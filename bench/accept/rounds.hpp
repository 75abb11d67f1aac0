// Several rounds of the same checks, as `polyring accept --duration` runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

/// Joins the rows of one more round, the `number`-th from 1 on, to those of the rounds before: of each
/// subject one row stays, that of its worst verdict, the first of such; of what always passed, the last.
/// `trend` has its median in each round that measured it. Of what was measured before no samples stay, so
/// that a day fits into a file.
void add_round(std::vector<CheckRow>& all, std::span<const CheckRow> round, int number);

/// Where the median of the last third of the rounds is worse than that of the first third by more than 5 %, a
/// sentence each, the worst first, five at most. Of nothing with fewer than six rounds.
std::vector<std::string> drifts(std::span<const CheckRow> rows);

}  // namespace polyring
