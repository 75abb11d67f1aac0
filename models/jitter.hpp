// Jitter: ranks that compute the same do not take the same time, and a step waits for the slowest.
//
// The computing time of each rank in each step is the stated one times a factor, drawn anew, lognormal with
// mean 1 and the coefficient of variation c:
//
//   ln factor ~ N(−σ²/2, σ²),  σ² = ln(1 + c²)
//
// The largest of n such factors has the distribution F(x)ⁿ, so one uniform number u gives it, whatever n is:
// F⁻¹(u^(1/n)). A rank's factor holds for the whole of its step.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/step.hpp"

namespace polyring {

struct Jitter {
  double variation = 0;  // standard deviation of a rank's computing time over its mean
  std::uint64_t seed = 1;
  int steps = 200;  // that are drawn
};

/// Reads `5%` or `0.05`, from 0 to 100 %. Throws a usage Error for anything else.
double parse_variation(std::string_view text);

/// The factor of the slowest of `ranks`, in each of jitter.steps steps. The same seed gives the same numbers
/// on every machine, and for more ranks none that is smaller.
std::vector<double> slowest_factors(const Jitter& jitter, int ranks);

/// The factor that the slowest of `ranks` stays below with probability `probability`, between 0 and 1.
double slowest_quantile(double variation, int ranks, double probability);

/// Among the steps that were drawn.
struct JitteredStep {
  Step median;  // the one whose total is the median, or the one just below it
  Seconds low;  // 95 % of the totals lie from low to high
  Seconds high;
};

/// `step` ran without jitter: its allreduces take as long with it, but begin when the slowest of `ranks` has
/// the gradients. jitter.steps is 1 or more.
JitteredStep with_jitter(const Jitter& jitter, int ranks, const StepCompute& compute,
                         const std::vector<Bucket>& buckets, bool overlap, const Step& step,
                         const Interplay& interplay = {});

}  // namespace polyring
