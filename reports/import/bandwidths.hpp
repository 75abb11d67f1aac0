// What printed bandwidths tell beside the times: how many ranks there were, and whether a row is whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyring {

/// In GB/s, as printed: their digits say how exact they are.
struct Bandwidths {
  std::string algbw;
  std::string busbw;
};

/// Between which all busbw / algbw lie.
struct RatioLimits {
  double low = 0;
  double high = 0;  // infinite where nothing tells
};
RatioLimits ratio_limits(const std::vector<Bandwidths>& rows);

/// The only number of ranks with which all rows fit the definition of busbw; nothing where several fit, or
/// none.
std::optional<int> ranks_by_busbw(const std::vector<Bandwidths>& rows, std::string_view collective);

/// Whether a size, a time and an algbw cannot be of one row.
bool contradicts(double bytes, double us, double algbw);

}  // namespace polyring
