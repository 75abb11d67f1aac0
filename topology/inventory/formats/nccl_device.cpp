#include "topology/inventory/formats/nccl_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topology/inventory/probe/sysfs.hpp"

namespace polyring::nccl_xml {
namespace {

/// Lanes of SDR, DDR or QDR, which have another coding than later ones: 25 Gb/s are none.
bool is_of_qdr_or_older(std::int64_t megabits_per_second) {
  constexpr std::array kLanes{1, 2, 4, 8, 12};
  return std::ranges::any_of(std::array{2'500, 5'000, 10'000}, [&](int lane) {
    return std::ranges::find(kLanes, megabits_per_second / lane) != kLanes.end() &&
           megabits_per_second % lane == 0;
  });
}

}  // namespace

Bandwidth as_kept(Bandwidth bandwidth) {
  return gigabytes_per_second(rounded(bandwidth.gigabytes_per_second()));
}

Bandwidth port_bandwidth(std::int64_t megabits_per_second, NicKind kind) {
  if (megabits_per_second <= 0) return {};
  const char* generation = is_of_qdr_or_older(megabits_per_second) ? " (QDR)" : "";
  return as_kept(probe::openfabrics_rate(
      fmt::format("{} Gb/sec{}", static_cast<double>(megabits_per_second) / 1000, generation), kind));
}

bool is_ambiguous(std::int64_t megabits_per_second, NicKind kind) {
  return megabits_per_second == 40'000 && kind != NicKind::ethernet;
}

}  // namespace polyring::nccl_xml
