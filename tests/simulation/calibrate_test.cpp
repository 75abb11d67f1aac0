// Calibrations: links that made the times are found again, and what the times do not tell is said.
#include "simulation/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "topology/presets.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kRate = 25e6;

/// Hosts whose NICs are of kRate, or of unknown speed.
Cluster hosts(int count, int processes, Bandwidth nic = {kRate}) {
  Machine machine;
  machine.name = "host";
  machine.packages = {{"package0", "", 2, {}, {}, {}}};
  Nic eth;
  eth.name = "eth0";
  eth.ports = {{1, true, nic}};
  machine.nics = {eth};
  machine.links = {{{DeviceKind::package, 0}, {DeviceKind::nic, 0}, LinkKind::pcie, {}, {}}};
  return cluster_of(with_processes(std::move(machine), processes), count);
}

Calibration truth() {
  Calibration calibration;
  calibration.links = {{LinkClass::memory, microseconds(4), gigabytes_per_second(3), 1, {}, {}},
                       {LinkClass::network, microseconds(90), {}, 0.94, {}, {}}};
  return calibration;
}

/// Allreduces of 1 KiB to 4 MiB in chunks of 64 KiB, times `longer`, by three algorithms, that took as long
/// as in the calibration.
std::vector<MeasuredPoint> points_on(const Cluster& cluster, const Calibration& calibration,
                                     Count longer = 1) {
  const int ranks = cluster.ranks();
  std::vector<MeasuredPoint> points;
  for (const Count count : {256, 16384, 262144, 1048576}) {
    for (const char* algorithm : {"multi-ring", "ring", "halving-doubling"}) {
      MeasuredPoint point;
      point.cluster = cluster;
      point.plan = {algorithm, {ranks}, {}, 1, {65536 * static_cast<std::uint64_t>(longer)}};
      if (point.plan.algorithm == "multi-ring" && cluster.host_count() > 1)
        point.plan.dims = {cluster.host(0).ranks(), cluster.host_count()};
      point.count = longer * count;
      point.time = predict(point, calibration);
      points.push_back(point);
    }
  }
  return points;
}

std::vector<MeasuredPoint> operator+(std::vector<MeasuredPoint> a, const std::vector<MeasuredPoint>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double parameter(const Calibration& calibration, LinkClass link, bool latency) {
  const LinkFit* fit = calibration.find(link);
  if (fit == nullptr) return 0;
  return latency ? fit->latency.value : fit->bandwidth.known() ? fit->bandwidth.value : fit->share;
}

TEST(Calibrate, FindsTheLinksThatMadeTheTimes) {
  const Calibration found = calibrate(points_on(hosts(1, 4), truth()) + points_on(hosts(2, 2), truth()) +
                                      points_on(hosts(4, 4), truth()));
  ASSERT_EQ(found.links.size(), 2u);
  for (const LinkClass link : {LinkClass::memory, LinkClass::network}) {
    for (const bool latency : {true, false}) {
      const double wanted = parameter(truth(), link, latency);
      EXPECT_NEAR(parameter(found, link, latency) / wanted, 1, 0.05) << to_text(link) << " " << latency;
    }
  }
  EXPECT_LT(found.fitted.worst, 0.02);
  EXPECT_EQ(found.fitted.points, 36);
  EXPECT_FALSE(found.checked);
  EXPECT_EQ(found.range.most_ranks, 16);
  EXPECT_EQ(found.range.most_hosts, 4);
  EXPECT_EQ(found.range.least.value, 1024u);
  EXPECT_EQ(found.range.largest.value, 4u << 20);

  const Calibration checked = with_check(found, points_on(hosts(3, 3), truth()));
  ASSERT_TRUE(checked.checked);
  EXPECT_EQ(checked.checked->points, 12);
  EXPECT_LT(checked.checked->worst, 0.02);
}

TEST(Calibrate, SaysHowFarNoiseMayHaveMovedIt) {
  std::vector<MeasuredPoint> points = points_on(hosts(2, 2), truth()) + points_on(hosts(4, 2), truth());
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i].time = (1 + 0.05 * std::sin(2.4 * static_cast<double>(i * i))) * points[i].time;
  const Calibration found = calibrate(points);
  EXPECT_GT(found.fitted.mean, 0.01);
  const LinkFit* network = found.find(LinkClass::network);
  ASSERT_NE(network, nullptr);
  ASSERT_TRUE(network->latency_error && network->bandwidth_error);
  EXPECT_GT(*network->bandwidth_error, 0.001);
  EXPECT_LT(*network->bandwidth_error, 0.05);
  EXPECT_NEAR(network->share / 0.94, 1, 3 * *network->bandwidth_error);
  EXPECT_NEAR(network->latency.value / 90e-6, 1, 3 * *network->latency_error);
}

TEST(Calibrate, LeavesWhatTheTimesDoNotTell) {
  // One process a host: what memory does drowns in the network's share.
  std::vector<MeasuredPoint> points;
  for (const MeasuredPoint& point : points_on(hosts(2, 1), truth()))
    if (point.count >= 262144) points.push_back(point);
  const Calibration found = calibrate(points);
  const LinkFit* memory = found.find(LinkClass::memory);
  ASSERT_NE(memory, nullptr);
  EXPECT_NEAR(memory->bandwidth.gigabytes_per_second(), 5, 0.5);
  EXPECT_NEAR(found.find(LinkClass::network)->share, 0.94, 0.01);
}

TEST(Calibrate, FindsASpeedThatIsNotStated) {
  Calibration of_unknown = truth();
  of_unknown.links[1].bandwidth = {20e6};
  const Cluster cluster = hosts(3, 2, {});
  const Calibration found = calibrate(points_on(cluster, of_unknown));
  EXPECT_NEAR(found.find(LinkClass::network)->bandwidth.value / 20e6, 1, 0.02);
  EXPECT_NEAR(calibrated(cluster, found).host(0).nics.front().bandwidth().value / 20e6, 1, 0.02);
}

TEST(Calibrate, FitsLinksBetweenGpusThatMessagesCross) {
  Calibration of_gpus;
  of_gpus.links = {{LinkClass::nvlink, microseconds(3), {}, 0.8, {}, {}},
                   {LinkClass::pcie, microseconds(5), {}, 0.7, {}, {}},
                   {LinkClass::socket_bus, microseconds(2), {}, 0.6, {}, {}},
                   {LinkClass::network, microseconds(9), {}, 0.9, {}, {}}};
  // In a DGX A100 NVLink joins all GPUs, and PCIe leads to NICs alone.
  const Calibration of_one = calibrate(points_on(preset("dgx-a100", 1), of_gpus, 64));
  ASSERT_EQ(of_one.links.size(), 1u);
  EXPECT_EQ(of_one.links[0].link, LinkClass::nvlink);
  EXPECT_NEAR(of_one.links[0].latency.value / 3e-6, 1, 0.05);
  EXPECT_NEAR(of_one.links[0].share / 0.8, 1, 0.05);
  const Calibration of_two = calibrate(points_on(preset("dgx-a100", 2), of_gpus, 64));
  std::vector<LinkClass> crossed;
  for (const LinkFit& fit : of_two.links) crossed.push_back(fit.link);
  EXPECT_THAT(crossed, ElementsAre(LinkClass::nvlink, LinkClass::pcie, LinkClass::network));
  EXPECT_LT(of_two.fitted.worst, 0.02);
}

TEST(Calibrate, NeedsMoreTimesThanUnknowns) {
  std::vector<MeasuredPoint> points = points_on(hosts(2, 2), truth());
  points.resize(3);
  try {
    calibrate(points);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("3 measured times cannot tell 4 unknowns apart"));
  }
}

TEST(Calibrated, NamesWhatNoRunCrossed) {
  const Cluster minsky = preset("minsky", 2);
  Calibration calibration;
  EXPECT_THAT(not_fitted(minsky, calibration, 4),
              ElementsAre(LinkClass::nvlink, LinkClass::pcie, LinkClass::socket_bus));
  EXPECT_THAT(not_fitted(minsky, calibration, 8),
              ElementsAre(LinkClass::nvlink, LinkClass::pcie, LinkClass::socket_bus, LinkClass::network));
  LinkFit fit;
  fit.link = LinkClass::nvlink;
  calibration.links = {fit};
  EXPECT_THAT(not_fitted(minsky, calibration, 4), ElementsAre(LinkClass::pcie, LinkClass::socket_bus));
  EXPECT_THAT(not_fitted(hosts(4, 2), truth(), 8), ElementsAre());
}

TEST(Calibrated, UplinksReachTheShareThatTheNetworkDoes) {
  Cluster cluster = hosts(4, 2);
  cluster.fabric.hosts_per_leaf = 2;
  cluster.fabric.leaf_uplink = {kRate};
  cluster.fabric.pods = {{4, {kRate / 2}}};
  EXPECT_THAT(calibrated(cluster, truth()).fabric.leaf_uplink.value, DoubleNear(0.94 * kRate, 1));
  Calibration with_uplink = truth();
  with_uplink.links.push_back({LinkClass::uplink, microseconds(7), {}, 0.5, {}, {}});
  const Fabric fabric = calibrated(cluster, with_uplink).fabric;
  EXPECT_THAT(fabric.leaf_uplink.value, DoubleNear(0.5 * kRate, 1));
  EXPECT_THAT(fabric.pods.at(0).uplink.value, DoubleNear(0.25 * kRate, 1));
  EXPECT_THAT(fabric.spine_latency.value, DoubleNear(7e-6, 1e-12));
  EXPECT_THAT(fabric.latency.value, DoubleNear(90e-6, 1e-12));
}

TEST(Calibrated, KeepsWhatWasNotMeasured) {
  Calibration memory_alone = truth();
  memory_alone.links.pop_back();
  const Cluster cluster = calibrated(hosts(2, 2), memory_alone);
  EXPECT_EQ(cluster.host(0).nics.front().bandwidth().value, kRate);
  for (const Link& link : cluster.host(0).links) {
    const bool memory = link.kind == LinkKind::memory;
    EXPECT_EQ(link.bandwidth.value, memory ? 3e9 : 0);
    EXPECT_EQ(link.latency.value, memory ? microseconds(4).value : 0);
  }
}

TEST(PredictionErrors, AreThoseOfTheTimes) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (int i = 1; i <= 20; ++i) {
    measured.push_back(i);
    predicted.push_back(i * (i % 2 == 0 ? 1 + 0.01 * i : 1 - 0.01 * i));
  }
  const PredictionError error = prediction_error(predicted, measured);
  EXPECT_EQ(error.points, 20);
  EXPECT_NEAR(error.mean, 0.105, 1e-12);
  EXPECT_NEAR(error.worst, 0.20, 1e-12);
  EXPECT_NEAR(error.spread, 0.19, 1e-12);
}

}  // namespace
}  // namespace polyring
