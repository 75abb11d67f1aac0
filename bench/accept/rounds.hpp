// Several rounds of the same checks, as `polyring accept --duration` runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "reports/result.hpp"
#include "reports/round_change.hpp"

namespace polyring {

/// Joins the rows of one more round, the `number`-th from 1 on, or of one of its checks, to those before: of
/// each subject one row stays, that of its worst verdict, the first of such; of what always passed, the last.
/// `trend` has its median in each round that measured it. Of what was measured before no samples stay, so
/// that a day fits into a file.
void add_round(std::vector<CheckRow>& all, std::span<const CheckRow> round, int number);

/// What this has changed, for a journal: whole rows where they are new or have another verdict, and of the
/// others what they have got. So of a row that always passes the journal has the first value.
RoundChange change_of(std::span<const CheckRow> before, std::span<const CheckRow> after, Rounds rounds);
/// All rows, whole.
RoundChange change_of(std::span<const CheckRow> after, Rounds rounds);

/// Whether no other round fits into this time, by the mean of those that came to their end.
bool is_over(const Rounds& rounds, Seconds duration);

/// Where the median of the last third of the rounds is worse than that of the first third by more than 5 %, a
/// sentence each, the worst first, five at most. Of nothing with fewer than six rounds.
std::vector<std::string> drifts(std::span<const CheckRow> rows);

}  // namespace polyring
