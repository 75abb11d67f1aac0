#include "bench/stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace polyring {
namespace {

constexpr double kLeast_us = 100e3;
constexpr double kTimesUsual = 10;

double worth_mentioning(double usual_us) { return std::max(kLeast_us, kTimesUsual * usual_us); }

}  // namespace

std::vector<Seconds> lateness(std::span<const double> waited_us, double usual_us) {
  std::vector<double> sorted(waited_us.begin(), waited_us.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  std::vector<Seconds> late;
  for (const double waited : waited_us) {
    const double behind = *middle - waited;
    late.push_back({behind > worth_mentioning(usual_us) ? behind * 1e-6 : 0});
  }
  return late;
}

std::vector<Straggler> find_stragglers(const MpiWorld& world, std::span<const double> waited_us,
                                       double usual_us) {
  // Mostly there is nothing to be told, and nothing more to be sent.
  std::vector<double> negative;
  for (const double waited : waited_us) negative.push_back(-waited);
  const std::vector<double> most = world.max(waited_us);
  const std::vector<double> least = world.max(negative);
  std::vector<double> suspicious;
  for (std::size_t i = 0; i < waited_us.size(); ++i) {
    if (most[i] + least[i] > worth_mentioning(usual_us)) suspicious.push_back(waited_us[i]);
  }
  if (suspicious.empty()) return {};

  const auto ranks = static_cast<std::size_t>(world.size());
  const auto of_all = world.allgather(std::as_bytes(std::span(suspicious)));
  std::vector<Straggler> stragglers(ranks);
  std::vector<double> waited(ranks);
  for (std::size_t i = 0; i < suspicious.size(); ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::memcpy(&waited[rank], of_all[rank].data() + i * sizeof(double), sizeof(double));
    }
    const std::vector<Seconds> late = lateness(waited, usual_us);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      stragglers[rank].rank = static_cast<Rank>(rank);
      stragglers[rank].times += late[rank].value > 0 ? 1 : 0;
      stragglers[rank].longest = std::max(stragglers[rank].longest, late[rank]);
    }
  }
  std::erase_if(stragglers, [](const Straggler& straggler) { return straggler.times == 0; });
  return stragglers;
}

void Stragglers::add(const std::vector<Straggler>& stragglers) {
  for (const Straggler& straggler : stragglers) {
    Straggler& known = by_rank_[straggler.rank];
    known.rank = straggler.rank;
    known.times += straggler.times;
    known.longest = std::max(known.longest, straggler.longest);
  }
}

std::vector<std::string> Stragglers::sentences(const MpiWorld& world) const {
  std::vector<std::string> sentences;
  for (const auto& [rank, straggler] : by_rank_) {
    const std::string how_late = to_text(straggler.longest);
    sentences.push_back(fmt::format(
        "rank {} ({}) came {}; the others waited", rank, world.host(rank),
        straggler.times == 1 ? fmt::format("{} late once", how_late)
                             : fmt::format("late {} times, by up to {}", straggler.times, how_late)));
  }
  return sentences;
}

}  // namespace polyring
