#include "bench/accept/expected_least.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/predict/expected_interval.hpp"

namespace polyring {
namespace {

/// From here on figures are published of most links.
constexpr Bytes kLarge{std::uint64_t{1} << 30};

/// Nobody has published what smaller payloads reach of most links: allow for less.
constexpr double kOfSmall = 0.8;
/// A step of a smaller payload may take so much longer than its bytes: a message over TCP on a busy host.
constexpr Seconds kLatencyOfStep{50e-6};

/// What remains of the rate where each of a ring's 2(n − 1) steps has such a latency.
double part_left(Bytes size, int ranks, Bandwidth busbw) {
  const double n = ranks;
  const double moving = 2 * (n - 1) / n * (size / busbw).value;
  return moving / (moving + 2 * (n - 1) * kLatencyOfStep.value);
}

}  // namespace

std::optional<Threshold> expected_least(const Cluster& cluster, const std::string& algorithm, Bytes size) {
  try {
    const auto of = [&](Bytes payload) {
      return expected_interval(cluster, Collective::allreduce, algorithm, payload);
    };
    auto interval = of(size);
    double part = 1;
    if (!interval && size < kLarge) {
      interval = of(kLarge);
      if (interval) part = kOfSmall * part_left(size, cluster.ranks(), interval->low);
    }
    if (!interval) return std::nullopt;
    const std::string less = part < 1 ? fmt::format("{:.0f} % of ", 100 * part) : "";
    return Threshold{part * interval->low.gigabytes_per_second(),
                     {},
                     fmt::format("{}the low end of what is expected: {}", less, interval->rests_on)};
  } catch (const Error&) {
    return std::nullopt;  // links of unknown speed, or hosts that are not joined
  }
}

}  // namespace polyring
