#include "reports/import/bandwidths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/import/log_text.hpp"

namespace polyring {
namespace {

/// Half of the last digit that was printed.
double half_digit(std::string_view printed) {
  const std::size_t point = printed.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : printed.size() - point - 1;
  return 0.5 * std::pow(10, -static_cast<double>(decimals));
}

}  // namespace

RatioLimits ratio_limits(const std::vector<Bandwidths>& rows) {
  RatioLimits limits{0, std::numeric_limits<double>::infinity()};
  for (const Bandwidths& row : rows) {
    const auto algbw = number_in(row.algbw);
    const auto busbw = number_in(row.busbw);
    const double algbw_half = half_digit(row.algbw);
    const double busbw_half = half_digit(row.busbw);
    if (!algbw || !busbw || *algbw <= 2 * algbw_half) continue;
    limits.low = std::max(limits.low, (*busbw - busbw_half) / (*algbw + algbw_half));
    limits.high = std::min(limits.high, (*busbw + busbw_half) / (*algbw - algbw_half));
  }
  return limits;
}

std::optional<int> ranks_by_busbw(const std::vector<Bandwidths>& rows, std::string_view collective) {
  // busbw / algbw is factor * (n - 1) / n.
  const double factor = collective == "allreduce" ? 2 : 1;
  const RatioLimits ratio = ratio_limits(rows);
  if (ratio.low > ratio.high || ratio.high >= factor) return std::nullopt;
  const double low = std::ceil(factor / (factor - ratio.low) - 1e-9);
  const double high = std::floor(factor / (factor - ratio.high) + 1e-9);
  return low == high && low >= 1 && low < 1e6 ? std::optional(static_cast<int>(low)) : std::nullopt;
}

bool contradicts(double bytes, double us, double algbw) {
  if (us <= 0) return false;
  const double expected = bytes / us / 1e3;
  const double slack = 0.02 + 0.02 * expected;
  // Old versions of nccl-tests count (n - 1) / n of the bytes of an allgather, from which on a half is left.
  return algbw > expected + slack || algbw < expected / 2 - slack;
}

}  // namespace polyring
