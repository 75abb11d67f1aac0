#include "reports/clocks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace polyring {
namespace {

constexpr double kNoise = 1.02;

bool near(double a, double b) { return std::max(a, b) <= kNoise * std::min(a, b); }

}  // namespace

bool Clocks::is_like(const Clocks& other) const { return near(least, other.least) && near(most, other.most); }

std::string Clocks::text() const {
  if (near(least, most)) return fmt::format("{:.0f} MHz", most);
  const std::string where = slowest_host.empty() ? "" : ", least on " + slowest_host;
  return fmt::format("{:.0f} to {:.0f} MHz{}", least, most, where);
}

std::optional<Clocks> clocks_of(std::span<const HostConditions> hosts) {
  std::optional<Clocks> all;
  bool same = true;
  for (const HostConditions& host : hosts) {
    if (!host.least_clock_MHz || !host.most_clock_MHz) continue;
    if (!all) all = Clocks{*host.least_clock_MHz, *host.most_clock_MHz, host.host};
    same = same && near(all->least, *host.least_clock_MHz);
    if (*host.least_clock_MHz < all->least) {
      all->least = *host.least_clock_MHz;
      all->slowest_host = host.host;
    }
    all->most = std::max(all->most, *host.most_clock_MHz);
  }
  if (all && same) all->slowest_host.clear();
  return all;
}

}  // namespace polyring
