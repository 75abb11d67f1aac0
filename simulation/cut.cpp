#include "simulation/cut.hpp"

#include <algorithm>
#include <vector>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/tuning.hpp"

namespace polyring {
namespace {

/// Less overlaps with little and is a message all the same.
constexpr std::uint64_t kSmallestChunk = 64 << 10;

std::vector<int> lane_counts(const Plan& plan, const PlanConstraints& constraints) {
  if (constraints.lanes > 0) return {constraints.lanes};
  if (!find_algorithm(plan.algorithm).lanes_differ) return {1};
  return {1, 2, 4};
}

std::uint64_t lane_of(Bytes payload, int lanes) {
  const auto of = static_cast<std::uint64_t>(lanes);
  return std::max<std::uint64_t>(1, (payload.value + of - 1) / of);
}

/// Chunks of a lane that are worth pricing, the largest first.
std::vector<std::uint64_t> chunk_sizes(std::uint64_t lane, Bytes longest_chunk, Bytes payload) {
  std::uint64_t chunk = longest_chunk.value == 0 ? lane : std::min(lane, longest_chunk.value);
  std::vector<std::uint64_t> sizes{chunk};
  for (chunk /= 4; chunk >= kSmallestChunk && payload.value / chunk <= kMostUsefulChunks; chunk /= 4)
    sizes.push_back(chunk);
  return sizes;
}

}  // namespace

Plan cheapest_cut(Plan plan, const PlanConstraints& constraints, Bytes longest_chunk, const Cluster& cluster,
                  const Router& router, Count count, ElementSizes sizes) {
  const Bytes payload{static_cast<std::uint64_t>(count * sizes.payload)};
  std::vector<Plan> plans;
  for (const int lanes : lane_counts(plan, constraints)) {
    const std::uint64_t lane = lane_of(payload, lanes);
    plan.lanes = lanes;
    for (const std::uint64_t chunk : constraints.chunk.value > 0
                                         ? std::vector{constraints.chunk.value}
                                         : chunk_sizes(lane, longest_chunk, payload)) {
      plan.chunk = chunk < lane ? Bytes{chunk} : Bytes{};
      plans.push_back(plan);
    }
  }
  std::vector<PricedPlan> priced = price_each(std::move(plans), cluster, router, count, sizes);
  std::stable_sort(priced.begin(), priced.end(),
                   [](const PricedPlan& a, const PricedPlan& b) { return a.price.time < b.price.time; });
  return std::move(priced[fewest_chunks(priced, cluster.ranks(), count, sizes)].plan);
}

}  // namespace polyring
