#include "collectives/runtime/mpi/gather_rounds.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace polyring {

std::size_t GatherRound::total() const {
  return counts.empty() ? 0
                        : static_cast<std::size_t>(begins.back()) + static_cast<std::size_t>(counts.back());
}

std::vector<GatherRound> gather_rounds(std::span<const std::int64_t> sizes, Bytes at_once) {
  assert(at_once.value >= 1 && at_once.value <= std::uint64_t{1} << 30);
  const auto most = static_cast<std::int64_t>(at_once.value);
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const std::int64_t largest = sizes.empty() ? 0 : *std::ranges::max_element(sizes);
  const auto ranks = static_cast<std::int64_t>(sizes.size());
  const std::int64_t share = all <= most ? largest : std::max<std::int64_t>(1, most / ranks);
  std::vector<GatherRound> rounds;
  for (std::int64_t offset = 0; offset < largest; offset += share) {
    GatherRound& round = rounds.emplace_back();
    round.offset = static_cast<std::size_t>(offset);
    int begin = 0;
    for (const std::int64_t size : sizes) {
      round.counts.push_back(static_cast<int>(std::clamp<std::int64_t>(size - offset, 0, share)));
      round.begins.push_back(begin);
      begin += round.counts.back();
    }
  }
  return rounds;
}

}  // namespace polyring
