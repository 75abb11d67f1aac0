#include "bench/session/remaining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace polyring {

Remaining::Remaining(const std::vector<double>& weights) {
  for (const double weight : weights) behind_.push_back(behind_.back() + weight);
}

std::optional<Seconds> Remaining::after(std::size_t done, Seconds elapsed) const {
  constexpr Seconds kLeast{1};
  const double behind = behind_[std::min(done, steps())];
  if (behind <= 0 || elapsed < kLeast) return std::nullopt;
  return ((behind_.back() - behind) / behind) * elapsed;
}

std::string rough_text(Seconds time) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  const double seconds = std::ceil(time.value);
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", std::ceil(seconds / kMinute));
  return fmt::format("{:.0f} h", std::ceil(seconds / kHour));
}

}  // namespace polyring
