// Rows of `polyring scale --published` that set a published training run beside the model. They only check
// it: no input, range or default of the model may rest on them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/result.hpp"
#include "reports/tables.hpp"

namespace polyring {

/// Whether the row is of such a run.
bool is_published_run(const ScaleRow& row);
/// Of such a row: whether the published efficiency lies in the modelled range.
bool is_inside(const ScaleRow& row);

std::vector<ScaleRow> published_runs_of(std::span<const ScaleRow> rows);
std::vector<ScaleRow> without_published_runs(std::span<const ScaleRow> rows);

/// How well the model foretold the runs, each at its most GPUs.
struct RunTally {
  int runs = 0;
  int inside = 0;
  double error = 0;         // of the middle, mean of the magnitudes: a part of the ideal efficiency
  double signed_error = 0;  // mean: above 0 where the model is too kind
};

/// Of the runs that were held out, or of the others.
RunTally tally_of(std::span<const ScaleRow> rows, bool held_out);

/// "held out", "seen before its costs were set".
std::string_view group_text(bool held_out);

/// A line for each row of the group, in their order.
Table published_runs_table(std::span<const ScaleRow> rows, bool held_out);
/// Those of both groups, with a column that says which.
Table published_runs_table(std::span<const ScaleRow> rows);

/// What all of them show, in sentences, and that they only check. There must be some.
std::string published_runs_finding(std::span<const ScaleRow> rows);

}  // namespace polyring
