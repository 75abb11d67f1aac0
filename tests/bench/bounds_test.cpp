// Bounds of measured allreduces: of all hosts, less what an emulated link's shaper lets pass at once, and
// none where an allreduce beats them by more than noise.
#include "bench/measure/bounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/bound.hpp"
#include "topology/processes.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Bytes kSize{1 << 20};

/// A host with one port of this rate, as an allreduce in host memory sees it.
Machine host(Bandwidth rate) {
  Machine machine;
  machine.name = "node";
  machine.packages.resize(1);
  machine.packages.front().name = "package0";
  machine.packages.front().cores = 2;
  Nic nic;
  nic.name = "eth0";
  nic.ports = {{1, true, rate}};
  machine.nics = {nic};
  machine.links = {{{DeviceKind::package, 0}, {DeviceKind::nic, 0}, LinkKind::pcie, {}, {}}};
  return machine;
}

Cluster cluster(std::vector<HostGroup> groups) {
  Cluster cluster = cluster_of(groups.front().machine, 1);
  cluster.groups = std::move(groups);
  cluster.validate();
  return cluster;
}

/// 1 MiB in 1,048.576 us between two of these.
Cluster two_hosts() { return cluster({{host(gigabytes_per_second(1)), 2}}); }

constexpr double kBoundUs = 1048.576;

/// Their median is `us`, and its interval reaches `noise` to either side.
Samples around(double us, double noise) {
  Samples samples;
  for (int i = -10; i <= 10; ++i) samples.microseconds.push_back(us + noise * i / 5);
  return samples;
}

std::optional<double> bound(Bounds& bounds, const Samples& samples, std::span<const Samples> passes = {}) {
  return bounds.bound_us(kSize, passes, std::span(&samples, 1));
}

TEST(Bounds, AreOfTheTopology) {
  Bounds bounds(two_hosts(), {});
  EXPECT_DOUBLE_EQ(bound(bounds, around(2000, 1)).value(), kBoundUs);
  EXPECT_THAT(bounds.notes(), IsEmpty());
}

TEST(Bounds, AreOfTheSlowestOfUnlikeHosts) {
  const Machine fast = host(gigabytes_per_second(10));
  Bounds bounds(cluster({{fast, 3}, {host(gigabytes_per_second(0.5)), 1}, {fast, 4}}), {});
  EXPECT_DOUBLE_EQ(bound(bounds, around(4000, 1)).value(), 2 * kBoundUs);
}

TEST(Bounds, HoldWithinTheNoiseOfWhatIsMeasured) {
  Bounds bounds(two_hosts(), {});
  // Half of the time, but nobody knows.
  EXPECT_TRUE(bound(bounds, around(kBoundUs / 2, kBoundUs)));
  EXPECT_TRUE(bound(bounds, around(kBoundUs - 1, 1.5)));
  EXPECT_THAT(bounds.notes(), IsEmpty());
}

TEST(Bounds, AreNoneWhereTheyAreBeatenByMoreThanNoise) {
  Bounds bounds(two_hosts(), {});
  // A thousandth less, and for certain.
  EXPECT_FALSE(bound(bounds, around(kBoundUs - 1, 0.1)));
  EXPECT_THAT(bounds.notes(),
              ElementsAre(HasSubstr("In 1 measurement a call took less than the time that the links")));
  // By one, for all.
  const std::vector<Samples> both{around(2000, 1), around(500, 1)};
  EXPECT_FALSE(bounds.bound_us(kSize, {}, both));
  EXPECT_THAT(bounds.notes(), ElementsAre(HasSubstr("In 2 measurements ")));
}

TEST(Bounds, AreNotBeatenByWhatWasNotTimed) {
  Bounds bounds(two_hosts(), {});
  EXPECT_TRUE(bound(bounds, Samples{}));
}

TEST(Bounds, OfMemoryHaveNoiseThemselves) {
  Bounds bounds({}, {});
  const std::vector<Samples> passes{around(3000, 1), around(1000, 100)};
  EXPECT_DOUBLE_EQ(bound(bounds, around(2000, 1), passes).value(), 1000);
  EXPECT_DOUBLE_EQ(bound(bounds, around(901, 1), passes).value(), 1000);
  EXPECT_THAT(bounds.notes(), ElementsAre(HasSubstr("the bound is measured beside the algorithms")));
  EXPECT_FALSE(bound(bounds, around(700, 1), passes));
  EXPECT_THAT(bounds.notes().back(), HasSubstr("In 1 measurement one pass over the same memory took longer"));
}

TEST(Bounds, OfTheLinksRemainWhereThatOfMemoryDoesNotHold) {
  Bounds bounds(two_hosts(), {});
  EXPECT_DOUBLE_EQ(bound(bounds, around(1500, 1), std::vector{around(1600, 1)}).value(), kBoundUs);
}

TEST(Bounds, TakeABurstIntoAccount) {
  Bounds bounds(two_hosts(), microseconds(200));
  EXPECT_DOUBLE_EQ(bound(bounds, around(2000, 1)).value(), kBoundUs - 200);
  EXPECT_THAT(bounds.notes(),
              ElementsAre(HasSubstr("lets a burst pass at once, for which its rate would need 200 us")));
  // All of it fits the burst.
  const Samples samples = around(10, 1);
  EXPECT_FALSE(bounds.bound_us({199'000}, {}, std::span(&samples, 1)));
  EXPECT_TRUE(bounds.bound_us({210'000}, {}, std::span(&samples, 0)));
  EXPECT_EQ(bounds.notes().size(), 1u);
}

}  // namespace
}  // namespace polyring
