// A comparison of runs in a few sentences.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/compare.hpp"

namespace polyring {

/// For each run beside the baseline, contender by contender, how their times compare over the sizes: "B's
/// multi-ring takes 0.83 to 0.91 of A's time from 1MiB to 64MiB (real: …)". Contenders that one of the two
/// lacks have none.
std::vector<std::string> summary_sentences(std::span<const ComparedRun> runs, const Comparison& comparison);

}  // namespace polyring
