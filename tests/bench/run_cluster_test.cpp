// The hosts of a run, with the processes that it placed on each.
#include "bench/record/run_cluster.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using testing::small_machine;

std::vector<RankHost> on(const std::vector<std::string>& hosts) {
  std::vector<RankHost> placement;
  for (const std::string& host : hosts) placement.push_back({static_cast<int>(placement.size()), host});
  return placement;
}

TEST(RunCluster, KeepsHostsAsTheyAre) {
  Machine other = small_machine();
  other.nics[0].ports[0].bandwidth = gigabytes_per_second(1);
  Cluster cluster = cluster_of(small_machine(), 3);
  cluster.groups.push_back({other, 1});
  const Cluster run = with_ranks_of(cluster, on({"a", "a", "b", "b", "c", "d"}), "this job");
  ASSERT_EQ(run.groups.size(), 3u);
  EXPECT_EQ(run.groups[0].count, 2);
  EXPECT_EQ(run.groups[0].machine.ranks(), 2);
  EXPECT_EQ(run.groups[1].count, 1);
  EXPECT_EQ(run.groups[1].machine.ranks(), 1);
  EXPECT_EQ(run.groups[1].machine.nics[0].bandwidth(), small_machine().nics[0].bandwidth());
  EXPECT_EQ(run.groups[2].machine.nics[0].bandwidth(), gigabytes_per_second(1));
  EXPECT_EQ(run.groups[2].machine.ranks(), 1);
}

TEST(RunCluster, NeedsTheHostsOfTheRun) {
  EXPECT_THAT(testing::usage_sentence([] {
                with_ranks_of(cluster_of(small_machine(), 2), on({"a", "b", "c"}), "x");
              }),
              ::testing::HasSubstr("ran on 3 hosts, and its machine has 2"));
}

constexpr const char* kFirst = "0000:3B:00.0";
constexpr const char* kSecond = "0000:af:00.0";

/// One host with two GPUs. CUDA writes the address of the first in large letters.
Cluster two_gpus() {
  Machine machine = small_machine();
  machine.gpus[0].pci = "0000:3b:00.0";
  machine.gpus[1].pci = kSecond;
  return cluster_of(machine, 1);
}

std::vector<RankHost> on_gpus_of_one_host(const std::vector<std::string>& gpus) {
  std::vector<RankHost> placement = on(std::vector<std::string>(gpus.size(), "a"));
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) placement[rank].gpu = gpus[rank];
  return placement;
}

TEST(RunCluster, HasRanksOnTheirGpus) {
  EXPECT_TRUE(on_gpus(on_gpus_of_one_host({kFirst})));
  EXPECT_FALSE(on_gpus(on({"a", "b"})));
  const Machine swapped =
      with_ranks_of(two_gpus(), on_gpus_of_one_host({kSecond, kFirst}), "this job").host(0);
  ASSERT_EQ(swapped.ranks(), 2);
  EXPECT_EQ(swapped.gpus[0].name, "gpu1");
  EXPECT_EQ(swapped.gpus[1].name, "gpu0");
  ASSERT_EQ(swapped.links.size(), small_machine().links.size());
  EXPECT_EQ(swapped.links[0].from, (DeviceId{DeviceKind::gpu, 1})) << "a link is at the wrong GPU";
  const Machine one = with_ranks_of(two_gpus(), on_gpus_of_one_host({kSecond}), "this job").host(0);
  ASSERT_EQ(one.ranks(), 1);
  EXPECT_EQ(one.gpus[0].name, "gpu1");
  EXPECT_EQ(one.links.size(), small_machine().links.size() - 1);
}

TEST(RunCluster, RefusesGpusWhoseLinksCannotBeTold) {
  const auto refusal = [](const Cluster& cluster, const std::vector<std::string>& gpus) {
    return testing::usage_sentence([&] { with_ranks_of(cluster, on_gpus_of_one_host(gpus), "x"); });
  };
  EXPECT_THAT(refusal(two_gpus(), {kFirst, "0000:00:00.0"}), ::testing::HasSubstr("has no GPU 0000:00:00.0"));
  EXPECT_THAT(refusal(two_gpus(), {kFirst, kFirst}), ::testing::HasSubstr("share GPU 0000:3B:00.0"));
  Cluster without_nvlinks = two_gpus();
  without_nvlinks.groups[0].machine.gpu_links_known = false;
  EXPECT_THAT(refusal(without_nvlinks, {kFirst, kSecond}),
              ::testing::HasSubstr("NVLinks of small are not known"));
}

}  // namespace
}  // namespace polyring
