// Which part of a link's rate good implementations reach, by what others measured.
//
// Figures are divided by what the links carry that the implementation can use together. Of three machines and
// more the range is from the least to the greatest, 3 % wider at each end; of fewer it is 25 % wide about
// their middle. Where figures spread by more than 25 %, it is 25 % about their median. Without any figure,
// those of the link's other generations give a range of 1.25 each way about their median, and without these
// it is half of the rate to all of it. See docs/model.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "bench/predict/published_rates.hpp"

namespace polyring {

/// From here on a payload is large, and its rate no longer depends much on its size or on the ranks.
inline constexpr Bytes kLargePayload{std::uint64_t{1} << 30};

struct Efficiency {
  double low = 0;  // of the rate
  double high = 0;
  bool from_data = false;  // figures of this very link and implementation
  std::string rests_on;    // a sentence without its full stop
};

/// The question that one figure answers.
struct RateQuestion {
  std::string_view link;  // by the names of PublishedRate
  std::string_view implementation;
  Bytes size;
  int hosts = 1;  // NVLink domains, where hosts make some
  int ranks = 0;
};

/// Nothing for a payload that is not large where no figure of such a size, and of as many hosts and ranks, is
/// published.
std::optional<Efficiency> efficiency(const RateQuestion& question,
                                     const PublishedRates& published = published_rates());

/// "rings", "reductions in the switches".
std::string implementation_text(std::string_view implementation);

}  // namespace polyring
