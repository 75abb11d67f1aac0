#include "collectives/schedule/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"

namespace polyring {
namespace {

constexpr double kFarthest = 4;

/// Patterns that send everything in each step move up to (n − 1) payloads: far above this they cannot win.
constexpr Bytes kLargestOfEverything{256 << 10};
/// Less is not worth a lane of its own.
constexpr std::uint64_t kSmallestLane = 16 << 10;
constexpr std::uint64_t kSmallestChunk = 64 << 10;
constexpr std::uint64_t kLargestChunk = 4 << 20;

bool about_the_same(const TunedPlan& a, const TunedPlan& b) {
  return a.place == b.place && a.payload == b.payload;
}

/// How many times larger the larger is.
double distance(Bytes a, Bytes b) {
  const auto [less, more] = std::minmax(a.value, b.value);
  return static_cast<double>(more) / static_cast<double>(std::max<std::uint64_t>(1, less));
}

}  // namespace

std::vector<TunedPlan> merged(std::vector<TunedPlan> older, std::span<const TunedPlan> newer) {
  for (const TunedPlan& choice : newer) {
    const auto same = std::find_if(older.begin(), older.end(),
                                   [&](const TunedPlan& old) { return about_the_same(old, choice); });
    if (same == older.end()) {
      older.push_back(choice);
    } else {
      *same = choice;
    }
  }
  return older;
}

const TunedPlan* nearest(std::span<const TunedPlan> choices, const TuningPlace& place, Bytes payload) {
  const TunedPlan* found = nullptr;
  for (const TunedPlan& choice : choices) {
    if (choice.place != place || distance(choice.payload, payload) > kFarthest) continue;
    const double farther =
        found == nullptr ? 1 : distance(found->payload, payload) - distance(choice.payload, payload);
    if (farther > 0 || (farther == 0 && choice.payload < found->payload)) found = &choice;
  }
  return found;
}

Plan effective(Plan plan, Bytes payload) {
  const auto lanes = static_cast<std::uint64_t>(plan.lanes);
  if (plan.chunk.value >= (payload.value + lanes - 1) / lanes) plan.chunk = {};
  return plan;
}

bool same_schedule(const Plan& a, const Plan& b) {
  Plan renamed = b;
  renamed.patterns = a.patterns;
  if (a != renamed || a.patterns.size() != b.patterns.size()) return false;
  for (std::size_t i = 0; i < a.patterns.size(); ++i)
    if (!same_moves(*find_pattern(a.patterns[i]), *find_pattern(b.patterns[i]), a.dims[i])) return false;
  return true;
}

std::vector<Plan> other_patterns(const Plan& plan, Bytes payload) {
  std::vector<Plan> plans;
  for (std::size_t dimension = 0; dimension < plan.dims.size(); ++dimension) {
    std::vector<const Pattern*> known{find_pattern(plan.patterns[dimension])};
    for (const std::string_view name : pattern_names()) {
      const Pattern& pattern = *find_pattern(name);
      const Outcome outcome = pattern.outcome();
      if (outcome != Outcome::scattered && payload > kLargestOfEverything) continue;
      // All ranks need the sum in the end, and only that of a few should go on from one dimension to the
      // next.
      const bool last = dimension + 1 == plan.dims.size();
      if (outcome == (last ? Outcome::at_one : Outcome::everywhere)) continue;
      const auto is_the_same = [&](const Pattern* other) {
        return same_moves(*other, pattern, plan.dims[dimension]);
      };
      if (std::ranges::any_of(known, is_the_same)) continue;
      known.push_back(&pattern);
      Plan other = plan;
      other.patterns[dimension] = name;
      plans.push_back(std::move(other));
    }
  }
  return plans;
}

std::vector<Plan> other_cuts(const Plan& plan, Bytes payload) {
  std::vector<Plan> plans;
  for (const int lanes : {1, 2, 4}) {
    const std::uint64_t lane = payload.value / static_cast<std::uint64_t>(lanes);
    if (lanes > 1 && lane < kSmallestLane) continue;
    std::vector<Bytes> chunks{{}};  // a lane whole
    for (std::uint64_t chunk = kSmallestChunk; chunk <= kLargestChunk && chunk < lane; chunk *= 4) {
      if (payload.value / chunk <= kMostUsefulChunks) chunks.push_back({chunk});
    }
    for (const Bytes chunk : chunks) {
      Plan other = plan;
      other.lanes = lanes;
      other.chunk = chunk;
      if (other != plan) plans.push_back(std::move(other));
    }
  }
  return plans;
}

}  // namespace polyring
