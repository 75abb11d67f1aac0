#include "bench/accept/expected_least.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/predict/expected_interval.hpp"

namespace polyring {
namespace {

/// From here on figures are published of most links.
constexpr Bytes kLarge{std::uint64_t{1} << 30};

}  // namespace

double part_of_small(Bytes size, int ranks, Bandwidth of_large) {
  const double n = ranks;
  const double moving = 2 * (n - 1) / n * (size / of_large).value;
  return kOfSmall * moving / (moving + 2 * (n - 1) * kLatencyOfStep.value);
}

std::optional<Threshold> expected_least(const Cluster& cluster, const std::string& algorithm, Bytes size) {
  try {
    const auto of = [&](Bytes payload) {
      return expected_interval(cluster, Collective::allreduce, algorithm, payload);
    };
    auto interval = of(size);
    double part = 1;
    if (!interval && size < kLarge) {
      interval = of(kLarge);
      if (interval) part = part_of_small(size, cluster.ranks(), interval->low);
    }
    if (!interval) return std::nullopt;
    std::string what = "the low end of what is expected";
    if (part < 1)
      what = fmt::format(
          "{:.0f} % of {}, since no figures are published for such a payload and we allow {:.0f} % less and "
          "{:.0f} us more a step",
          100 * part, what, 100 * (1 - kOfSmall), 1e6 * kLatencyOfStep.value);
    return Threshold{
        part * interval->low.gigabytes_per_second(), {}, fmt::format("{}: {}", what, interval->rests_on)};
  } catch (const Error&) {
    return std::nullopt;  // links of unknown speed, or hosts that are not joined
  }
}

}  // namespace polyring
