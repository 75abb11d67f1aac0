#include "reports/published.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace polyring {
namespace {

TEST(Published, SeriesAreConsistent) {
  for (const PublishedScaling& series : published_scaling()) {
    const PublishedPoint& first = series.points.front();
    EXPECT_EQ(first.efficiency, 1) << series.system << ": the first point is the baseline";
    for (const PublishedPoint& point : series.points) {
      if (!point.speedup) continue;
      // Both were published rounded: the speedup to a tenth, the efficiency to a hundredth.
      const double nodes = static_cast<double>(point.gpus) / first.gpus;
      EXPECT_NEAR(*point.speedup / nodes, point.efficiency, 0.005 + 0.05 / nodes + 1e-9) << point.gpus;
    }
  }
}

TEST(Published, IsFoundByMachineModelAndAlgorithm) {
  const PublishedScaling* ddl = find_published("minsky", "resnet50", "multi-ring");
  ASSERT_NE(ddl, nullptr);
  ASSERT_NE(find_point(ddl, 256), nullptr);
  EXPECT_EQ(find_point(ddl, 256)->speedup, 60.6);
  EXPECT_EQ(find_point(ddl, 12), nullptr);
  EXPECT_EQ(find_published("minsky", "resnet50", "ring"), nullptr) << "DDL was no flat ring";
  EXPECT_EQ(find_point(nullptr, 4), nullptr);
}

TEST(Published, ClaimsAreOfOneFigureEach) {
  for (const PublishedClaim& claim : published_claims()) {
    EXPECT_NE(claim.efficiency.has_value(), claim.images_per_second.has_value()) << claim.statement;
    EXPECT_FALSE(claim.source.empty()) << claim.statement;
  }
}

/// Against the file of facts, where there is one.
TEST(Published, AgreesWithTheFactsFile) {
  const char* path = std::getenv("POLYRING_PUBLISHED");
  if (path == nullptr) GTEST_SKIP() << "POLYRING_PUBLISHED does not name a published.json";
  std::ifstream file(path);
  const auto facts = nlohmann::json::parse(file);
  const auto check = [&](const char* id, const PublishedScaling& series) {
    for (const auto& entry : facts.at("scaling")) {
      if (entry.at("id") != id) continue;
      ASSERT_EQ(entry.at("gpus").size(), series.points.size());
      for (std::size_t i = 0; i < series.points.size(); ++i) {
        EXPECT_EQ(entry.at("gpus")[i], series.points[i].gpus);
        EXPECT_EQ(entry.at("efficiency")[i], series.points[i].efficiency);
        if (!entry.contains("speedup")) continue;
        EXPECT_EQ(entry.at("speedup")[i], *series.points[i].speedup);
      }
      return;
    }
    FAIL() << id << " is not in the file";
  };
  const auto claim = [&](const char* statement) {
    return *std::find_if(
        published_claims().begin(), published_claims().end(),
        [&](const PublishedClaim& any) { return any.statement.find(statement) != std::string_view::npos; });
  };
  for (const auto& entry : facts.at("scaling")) {
    if (entry.at("id") == "ddl-torch-resnet50") {
      EXPECT_EQ(entry.at("derived").at("images_per_second"), *claim("50 minutes").images_per_second);
      EXPECT_EQ(entry.at("gpus").back(), claim("50 minutes").gpus);
    } else if (entry.at("id") == "ddl-caffe-resnet101-22k") {
      const auto& claims = entry.at("claims");
      EXPECT_EQ(claims.at("efficiency_stated"), *claim("88 %").efficiency);
      EXPECT_EQ(claims.at("speedup_stated").get<double>() / 64, *claim("58 times").efficiency);
      EXPECT_NEAR(claims.at("single_server_days").get<double>() * 24 / claims.at("hours").get<double>() / 64,
                  *claim("7 hours").efficiency, 1e-12);
    } else if (entry.at("id") == "summit-climate") {
      EXPECT_EQ(entry.at("efficiency").back(), *claim("90.7").efficiency);
      EXPECT_EQ(entry.at("gpus").back(), claim("90.7").gpus);
    }
  }
  check("ddl-caffe-resnet50", *find_published("minsky", "resnet50", "multi-ring"));
  check("fair-caffe2-resnet50", *find_published("big-basin", "resnet50", "halving-doubling"));
}

}  // namespace
}  // namespace polyring
