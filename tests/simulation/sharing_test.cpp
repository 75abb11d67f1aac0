#include "simulation/sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace polyring {
namespace {

using Flows = std::map<int, std::vector<Use>>;

/// Progressive filling as in the textbook, of everything from nothing.
std::map<int, double> filled(const std::vector<double>& capacities, const Flows& flows) {
  std::map<int, double> rates;
  while (rates.size() < flows.size()) {
    std::vector<double> left = capacities;
    std::vector<double> weight(capacities.size());
    for (const auto& [flow, uses] : flows) {
      for (const Use& use : uses) {
        const auto resource = static_cast<std::size_t>(use.resource);
        if (rates.contains(flow)) {
          left[resource] -= use.weight * rates[flow];
        } else {
          weight[resource] += use.weight;
        }
      }
    }
    double level = std::numeric_limits<double>::infinity();
    int full = -1;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (weight[i] > 0 && left[i] / weight[i] < level) {
        level = left[i] / weight[i];
        full = static_cast<int>(i);
      }
    }
    for (const auto& [flow, uses] : flows) {
      const bool crosses =
          std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.resource == full; });
      if (!rates.contains(flow) && (crosses || full < 0)) rates[flow] = level;
    }
  }
  return rates;
}

TEST(Sharing, IsProgressiveFillingWhateverComesAndGoes) {
  std::mt19937 random(7);
  const auto up_to = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<double> capacities(static_cast<std::size_t>(1 + up_to(11)));
    for (double& capacity : capacities) capacity = 1 + up_to(4);
    Sharing sharing(capacities);
    Flows flows;
    for (int change = 0; change < 100; ++change) {
      for (int together = up_to(2); together >= 0; --together) {
        const int flow = up_to(29);
        if (flows.contains(flow)) {
          sharing.remove(flow);
          flows.erase(flow);
          continue;
        }
        std::map<int, Use> uses;
        for (int i = up_to(4); i > 0; --i) {
          const int resource = up_to(static_cast<int>(capacities.size()) - 1);
          uses[resource] = {resource, 1.0 + up_to(1)};
        }
        for (const auto& [resource, use] : uses) flows[flow].push_back(use);
        flows.try_emplace(flow);
        sharing.add(flow, flows.at(flow));
      }
      sharing.share();
      for (const auto& [flow, rate] : filled(capacities, flows)) {
        if (std::isinf(rate)) {
          EXPECT_EQ(sharing.rate(flow), rate);
        } else {
          ASSERT_NEAR(sharing.rate(flow), rate, 1e-9) << repeat << ", " << change << ", " << flow;
        }
      }
    }
  }
}

}  // namespace
}  // namespace polyring
