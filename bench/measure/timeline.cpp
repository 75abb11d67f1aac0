#include "bench/measure/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace polyring {

const Step& median_step(const TrainingSteps& measured) {
  std::vector<std::size_t> order(measured.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(),
                   [&](std::size_t a, std::size_t b) { return measured.total_ms[a] < measured.total_ms[b]; });
  return measured.steps[*middle];
}

std::vector<TimelineSpan> timeline_of(const Step& step) {
  std::vector<TimelineSpan> timeline;
  const auto add = [&](TimelineLane lane, std::string label, Span span) {
    if (span.duration().value > 0) {
      timeline.push_back({lane, std::move(label), span.begin.value * 1e3, span.end.value * 1e3});
    }
  };
  add(TimelineLane::compute, "forward", step.forward);
  add(TimelineLane::compute, "backward", step.backward);
  for (const BucketTimes& bucket : step.buckets) {
    add(TimelineLane::communication, fmt::format("bucket {}", bucket.bucket), bucket.communication);
  }
  return timeline;
}

}  // namespace polyring
