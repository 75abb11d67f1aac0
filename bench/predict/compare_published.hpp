// Published results modelled, for each combination of what was not published with them.
//
// Nothing is fitted: computing times are those of cited single-GPU throughputs, and where the published
// figure lies outside of all combinations, that is what the table says.
#pragma once

#include <vector>

#include "reports/published_comparison.hpp"

namespace polyring {

/// All that is known to have been published.
std::vector<PublishedComparison> compare_published();

/// A row of published_runs.hpp for each published efficiency that is not a baseline's: from the lowest to the
/// highest of all combinations, to its rounding, and the mean of their middles. The step is the first one's.
std::vector<ScaleRow> combined_rows(const PublishedComparison& comparison);

/// What holds for all of them, to be said below.
std::vector<std::string> comparison_notes();

}  // namespace polyring
