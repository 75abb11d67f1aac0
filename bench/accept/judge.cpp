#include "bench/accept/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/statistics.hpp"
#include "base/units.hpp"

namespace polyring {
namespace {

std::string with_unit(double value, const std::string& unit) {
  return unit.empty() ? significant(value, 4) : fmt::format("{} {}", significant(value, 4), unit);
}

/// "at least 10.1 GB/s", "from 1 to 2 GB/s".
std::string range_text(const Threshold& threshold, const std::string& unit) {
  if (threshold.least && threshold.most)
    return fmt::format("from {} to {}", significant(*threshold.least, 4), with_unit(*threshold.most, unit));
  return threshold.least ? fmt::format("at least {}", with_unit(*threshold.least, unit))
                         : fmt::format("at most {}", with_unit(*threshold.most, unit));
}

/// "busbw is 5.95 GB/s (5.9 to 6.0)", with the interval by which the verdict is.
std::string value_text(const CheckRow& row) {
  const Timing& value = *row.value;
  std::string text = fmt::format("{} is {}", row.quantity, with_unit(value.median, row.unit));
  if (value.samples.size() > 1) {
    const Summary summary = summarize(value.samples, kVerdictConfidence);
    text += fmt::format(" ({} to {})", significant(summary.ci_low, 4), significant(summary.ci_high, 4));
  }
  return text;
}

}  // namespace

Verdict decide(std::span<const double> samples, const Threshold& threshold) {
  if (samples.empty() || !threshold.given()) return Verdict::missing;
  const Summary summary = summarize(samples, kVerdictConfidence);
  const bool above = !threshold.least || summary.ci_low >= *threshold.least;
  const bool below = !threshold.most || summary.ci_high <= *threshold.most;
  if (above && below) return Verdict::pass;
  const bool beyond = (threshold.least && summary.ci_high < *threshold.least) ||
                      (threshold.most && summary.ci_low > *threshold.most);
  return beyond ? Verdict::fail : Verdict::inconclusive;
}

void judge(CheckRow& row, const Quantity& quantity, std::vector<double> samples, const Threshold& threshold) {
  row.quantity = quantity.name;
  row.unit = quantity.unit;
  row.least = threshold.least;
  row.most = threshold.most;
  row.threshold_source = threshold.source;
  row.verdict = decide(samples, threshold);
  if (samples.empty()) {
    row.why = fmt::format("{} was not measured.", quantity.name);
    row.remedy = "See the other findings of this run, and run this check again.";
    return;
  }
  row.value = timing(std::move(samples));
  if (!threshold.given()) {
    row.why = fmt::format("{}, and nothing says what it must be.", value_text(row));
    row.remedy = "Give a --baseline of a good run, or a specification.";
    return;
  }
  const std::string range = fmt::format("{} ({})", range_text(threshold, quantity.unit), threshold.source);
  switch (row.verdict) {
    case Verdict::pass:
      row.why = fmt::format("{}: {}.", value_text(row), range);
      break;
    case Verdict::fail:
      row.why = fmt::format("{}, and must be {}.", value_text(row), range);
      break;
    default:
      row.why = fmt::format("{}, too noisy to tell whether it is {}.", value_text(row), range);
      row.remedy = "See what else runs on these hosts, and run this check again with a larger --budget.";
  }
}

std::string as_sentence(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".";
}

}  // namespace polyring
