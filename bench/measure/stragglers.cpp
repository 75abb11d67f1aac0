#include "bench/measure/stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace polyring {
namespace {

constexpr double kLeast_us = 100e3;
constexpr double kTimesUsual = 10;

double worth_mentioning(double usual_us) { return std::max(kLeast_us, kTimesUsual * usual_us); }

/// One part of all ranks in ascending order: the one at this index.
double sorted_at(std::span<const Delay> of_ranks, double Delay::*part, std::size_t index) {
  std::vector<double> sorted;
  for (const Delay& delay : of_ranks) sorted.push_back(delay.*part);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index), sorted.end());
  return sorted[index];
}

}  // namespace

std::vector<Seconds> lateness(std::span<const Delay> of_ranks, double usual_us) {
  const std::size_t lower = (of_ranks.size() - 1) / 2;
  const std::size_t upper = of_ranks.size() / 2;
  const double before = sorted_at(of_ranks, &Delay::before, lower);
  const double waited = sorted_at(of_ranks, &Delay::waited, upper);
  const double paused = sorted_at(of_ranks, &Delay::paused, lower);
  std::vector<Seconds> late;
  for (const Delay& delay : of_ranks) {
    const double came_late = std::min(delay.before - before, waited - delay.waited);
    const double us = std::max(came_late, delay.paused - paused);
    late.push_back({us > worth_mentioning(usual_us) ? us * 1e-6 : 0});
  }
  return late;
}

std::vector<Straggler> find_stragglers(const World& world, std::span<const Delay> delays, double usual_us) {
  // Mostly there is nothing to be told, and nothing more to be sent.
  std::vector<double> longest;
  for (const Delay& delay : delays) longest.push_back(std::max(delay.waited, delay.paused));
  longest = world.max(longest);
  std::vector<Delay> suspicious;
  for (std::size_t i = 0; i < delays.size(); ++i) {
    if (longest[i] > worth_mentioning(usual_us)) suspicious.push_back(delays[i]);
  }
  if (suspicious.empty()) return {};

  const auto ranks = static_cast<std::size_t>(world.size());
  const auto of_all = world.allgather(std::as_bytes(std::span(suspicious)));
  std::vector<Straggler> stragglers(ranks);
  std::vector<Delay> of_ranks(ranks);
  for (std::size_t i = 0; i < suspicious.size(); ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::memcpy(&of_ranks[rank], of_all[rank].data() + i * sizeof(Delay), sizeof(Delay));
    }
    const std::vector<Seconds> late = lateness(of_ranks, usual_us);
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

std::vector<std::string> Stragglers::sentences(const World& world) const {
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
