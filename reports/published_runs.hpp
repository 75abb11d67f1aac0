// Rows of `polyring scale --published` that set a published training run beside the model. They only check
// it: no input, range or default of the model may rest on them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "reports/result.hpp"
#include "reports/tables.hpp"

namespace polyring {

/// Whether the row is of such a run.
bool is_published_run(const ScaleRow& row);
/// Of such a row: whether the published efficiency lies in the modelled range.
bool is_inside(const ScaleRow& row);

std::vector<ScaleRow> without_published_runs(std::span<const ScaleRow> rows);

/// What a run is to the model.
enum class RunGroup {
  held_out,
  seen,      // compared with it before its costs were set
  combined,  // something that the model needs was not published: the range is over all combinations
};
inline constexpr std::array kRunGroups{RunGroup::held_out, RunGroup::seen, RunGroup::combined};

/// How well the model foretold the runs, each at its most GPUs.
struct RunTally {
  int runs = 0;
  int inside = 0;
  double error = 0;         // of the middle, mean of the magnitudes: a part of the ideal efficiency
  double signed_error = 0;  // mean: above 0 where the model is too kind
};

RunTally tally_of(std::span<const ScaleRow> rows, RunGroup group);

/// A line for each row of the group, in their order.
Table published_runs_table(std::span<const ScaleRow> rows, RunGroup group);
/// Those of all groups, with a column that says which.
Table published_runs_table(std::span<const ScaleRow> rows);

/// What all of them show, in sentences, and that they only check. There must be some.
std::string published_runs_finding(std::span<const ScaleRow> rows);

}  // namespace polyring
