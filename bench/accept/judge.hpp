// Whether what was measured passes: a decision that knows how noisy the samples are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

/// What a value must be, in the value's unit, and who says so.
struct Threshold {
  std::optional<double> least;
  std::optional<double> most;
  std::string source;  // "expected", "baseline accept.json", "spec site.toml:12", "the other pairs"

  bool given() const { return least || most; }
};

/// Of verdicts by one look at such an interval, at most one of a thousand is wrong for a value at the
/// threshold; of those by several attempts, as many times more at most.
inline constexpr double kVerdictConfidence = 0.999;
/// Fewer samples have no interval of that confidence.
inline constexpr std::size_t kFewestSamples = 11;

/// pass: the whole interval of the median lies within the thresholds; fail: it lies beyond one of them;
/// inconclusive: neither, or there are fewer samples than kFewestSamples and not all of them are on one side;
/// missing: no samples, or no threshold.
Verdict decide(std::span<const double> samples, const Threshold& threshold);

/// What is measured, for sentences: "busbw" in "GB/s".
struct Quantity {
  std::string name;
  std::string unit;
  bool less_is_better = false;  // for a baseline, which says only what it was
  bool of_events = false;       // which come by chance: what it was once says nothing of what it must be
};

/// The row's value, thresholds, verdict and the sentence why, by `samples` and how often they were taken.
/// Sets a remedy where the verdict itself suggests one.
void judge(CheckRow& row, const Quantity& quantity, std::vector<double> samples, const Threshold& threshold);

/// Half a sentence, made whole.
std::string as_sentence(std::string text);

}  // namespace polyring
