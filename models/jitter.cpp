#include "models/jitter.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <random>

#include "base/error.hpp"
#include "base/part.hpp"

namespace polyring {

namespace {

/// Where a standard normal variable is above with probability `tail`, at most 1/2; by bisection.
double normal_upper_quantile(double tail) {
  double low = 0;
  double high = 40;  // where the tail is below the least double
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    const double above = 0.5 * std::erfc(middle / std::numbers::sqrt2);
    (above > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Between 0 and 1, neither of them. std::uniform_real_distribution differs between standard libraries.
double uniform(std::mt19937_64& random) { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; }

/// Of sorted values: the smallest that at least this part of them does not exceed.
Seconds quantile(const std::vector<Step>& sorted, double part) {
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1].total();
}

}  // namespace

double parse_variation(std::string_view text) {
  const std::optional<double> variation = read_part(text);
  if (!variation) {
    usage_error("jitter '{}' is not a coefficient of variation from 0 to 100 %; write it as 5% or 0.05",
                text);
  }
  return *variation;
}

double slowest_quantile(double variation, int ranks, double probability) {
  assert(ranks > 0 && probability > 0 && probability < 1);
  // u^(1/n) is close to 1 for many ranks: its complement keeps the digits.
  const double tail = -std::expm1(std::log(probability) / ranks);
  const double normal = tail <= 0.5 ? normal_upper_quantile(tail) : -normal_upper_quantile(1 - tail);
  const double variance = std::log1p(variation * variation);
  return std::exp(std::sqrt(variance) * normal - variance / 2);
}

std::vector<double> slowest_factors(const Jitter& jitter, int ranks) {
  std::mt19937_64 random(jitter.seed);
  std::vector<double> factors;
  for (int step = 0; step < jitter.steps; ++step)
    factors.push_back(slowest_quantile(jitter.variation, ranks, uniform(random)));
  return factors;
}

JitteredStep with_jitter(const Jitter& jitter, int ranks, const StepCompute& compute,
                         const std::vector<Bucket>& buckets, bool overlap, const Step& step,
                         const Interplay& interplay) {
  assert(jitter.steps > 0 && step.buckets.size() == buckets.size());
  const auto allreduce_time = [&](std::size_t i) { return step.buckets[i].communication.duration(); };
  std::vector<Step> steps;
  for (const double factor : slowest_factors(jitter, ranks)) {
    const StepCompute slowed{factor * compute.forward, factor * compute.backward, factor * compute.optimizer};
    steps.push_back(run_step(slowed, buckets, overlap, allreduce_time, interplay));
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.total() < b.total(); });
  return {steps[(steps.size() - 1) / 2], quantile(steps, 0.025), quantile(steps, 0.975)};
}

}  // namespace polyring
