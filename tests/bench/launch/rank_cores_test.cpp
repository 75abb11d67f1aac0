#include "bench/launch/rank_cores.hpp"

#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::small_machine;

Machine bare(int packages, int cores) {
  Machine machine;
  machine.name = "bare";
  for (int i = 0; i < packages; ++i)
    machine.packages.push_back({fmt::format("package{}", i), "", cores, {}, {}, {i}});
  return machine;
}

/// Four GPUs, two at each of two packages of ten cores.
Machine minsky() { return preset("minsky", 1).host(0); }

std::vector<int> range(int first, int last) {
  std::vector<int> numbers;
  for (int i = first; i <= last; ++i) numbers.push_back(i);
  return numbers;
}

/// Of a process that is bound to these.
AllowedCores bound_to(const Machine& machine, std::vector<int> cores) {
  return {range(0, machine.cores() - 1), std::move(cores)};
}

/// Each rank's, "0-4", on a host of which all, or these are allowed.
std::vector<std::string> lists(const Machine& machine, int ranks,
                               const std::optional<AllowedCores>& allowed = {}) {
  std::vector<std::string> texts;
  for (const std::vector<int>& cores : cores_of_ranks(machine, allowed, ranks).of_rank)
    texts.push_back(core_list(cores));
  return texts;
}

TEST(CoresOfRanks, AreNearTheirGpus) {
  EXPECT_THAT(lists(minsky(), 4), ElementsAre("0-4", "5-9", "10-14", "15-19"));
  EXPECT_THAT(lists(minsky(), 3), ElementsAre("0-4", "5-9", "10-19"));
  EXPECT_THAT(cores_of_ranks(minsky(), {}, 4).far_gpus, IsEmpty());
}

TEST(CoresOfRanks, FollowTheNumaNodesOfAPackage) {
  Machine machine = small_machine();
  machine.packages[0].numa_nodes = {3, 2};
  machine.gpus[0].numa = 3;
  // Node 2 has the first two of the four cores, node 3 the others.
  EXPECT_THAT(lists(machine, 2), ElementsAre("2-3", "4-7"));
  machine.packages[0].numa_nodes = {2, 3, 4};  // which cannot have equally many
  EXPECT_THAT(lists(machine, 1), ElementsAre("0-3"));
}

TEST(CoresOfRanks, FollowTheLinksWhereNumaNodesAreUnknown) {
  Machine machine = small_machine();
  for (Gpu& gpu : machine.gpus) gpu.numa = -1;
  EXPECT_THAT(lists(machine, 2), ElementsAre("0-3", "4-7"));
}

TEST(CoresOfRanks, AreOfTheFirstOfPackagesThatAreEquallyNear) {
  Machine machine = small_machine();
  for (Gpu& gpu : machine.gpus) gpu.numa = -1;
  machine.links.push_back({{DeviceKind::gpu, 0}, {DeviceKind::package, 1}, LinkKind::pcie, {}, {}});
  EXPECT_THAT(lists(machine, 1), ElementsAre("0-3"));
}

TEST(CoresOfRanks, FillPackagesEvenlyWithoutGpus) {
  EXPECT_THAT(lists(bare(2, 4), 2), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(lists(bare(2, 2), 3), ElementsAre("0", "1", "2-3"));
}

TEST(CoresOfRanks, AreNoneWhereRanksWouldShareThem) {
  EXPECT_THAT(lists(bare(1, 2), 3), IsEmpty());
  Machine machine = small_machine();
  machine.packages[1].cores = 0;
  EXPECT_THAT(lists(machine, 2), IsEmpty());
}

TEST(CoresOfRanks, AreAllowed) {
  EXPECT_THAT(lists(bare(2, 4), 2, bound_to(bare(2, 4), {1, 2, 6})), ElementsAre("1-2", "6"));
  EXPECT_THAT(lists(bare(2, 4), 3, bound_to(bare(2, 4), {1, 2, 6})), ElementsAre("1", "2", "6"));
  // Where one package has most of them, it gets most of the ranks.
  EXPECT_THAT(lists(bare(2, 4), 4, bound_to(bare(2, 4), {0, 4, 5, 7})), ElementsAre("0", "4", "5", "7"));
  EXPECT_THAT(lists(bare(2, 4), 1, bound_to(bare(2, 4), {4, 5, 7})), ElementsAre("4-5,7"));
  EXPECT_THAT(lists(bare(2, 4), 2, bound_to(bare(2, 4), {3})), IsEmpty());
  EXPECT_THAT(lists(minsky(), 4, bound_to(minsky(), {2, 3, 4, 10, 12})), ElementsAre("2", "3", "10", "12"));
  EXPECT_EQ(allowed_text(minsky(), bound_to(minsky(), {2, 3, 10, 12})),
            "4 of 20 cores are allowed (affinity)");
}

TEST(CoresOfRanks, AreNumberedAsTheCpusetHasThem) {
  EXPECT_THAT(lists(bare(2, 4), 2, AllowedCores{{2, 3, 6, 7}, {2, 3, 6, 7}}), ElementsAre("0-1", "2-3"));
  EXPECT_THAT(lists(bare(2, 4), 2, AllowedCores{{2, 3, 6, 7}, {3, 7}}), ElementsAre("1", "3"));
  EXPECT_EQ(allowed_text(bare(2, 4), {{2}, {2}}), "1 of 8 cores is allowed (cpuset)");
}

TEST(CoresOfRanks, AreTheNearestWhereNoneIsNear) {
  const AllowedCores second = bound_to(minsky(), range(10, 17));
  EXPECT_THAT(lists(minsky(), 4, second), ElementsAre("10-11", "12-13", "14-15", "16-17"));
  EXPECT_THAT(cores_of_ranks(minsky(), second, 4).far_gpus, ElementsAre(0, 1));
  // The other node of its package is nearer than the other package.
  Machine machine = small_machine();
  machine.packages[0].numa_nodes = {0, 2};
  machine.packages[1].numa_nodes = {1, 3};
  machine.gpus[0].numa = 2;
  machine.gpus[1].numa = 3;
  EXPECT_THAT(lists(machine, 2, bound_to(machine, {0, 1, 4, 5, 6})), ElementsAre("0-1", "6"));
  machine.gpus[0].numa = 3;
  machine.gpus[1].numa = 2;
  EXPECT_THAT(lists(machine, 1, bound_to(machine, {0, 2, 4, 5})), ElementsAre("4-5"));
}

TEST(CoresOfRanks, AreOthersWhereTheNearOnesAreTaken) {
  EXPECT_THAT(lists(minsky(), 4, bound_to(minsky(), {3, 10, 11, 12})), ElementsAre("3", "10", "11", "12"));
  EXPECT_THAT(lists(minsky(), 4, bound_to(minsky(), {3, 10, 11})), IsEmpty());
}

TEST(CoresOfRanks, AreAnyNumberOfRanges) {
  std::vector<int> odd;
  for (int i = 1; i < 256; i += 2) odd.push_back(i);
  EXPECT_THAT(cores_of_ranks(bare(1, 256), bound_to(bare(1, 256), odd), 1).of_rank, ElementsAre(odd));
}

TEST(UsableCores, AreThoseOfTheMachineUnlessFewerAreAllowed) {
  const Machine machine = bare(2, 4);
  EXPECT_EQ(usable_cores(machine, {}), 8);
  EXPECT_EQ(usable_cores(machine, bound_to(machine, {1, 2, 3})), 3);
}

TEST(UsableCores, AreAsManyAsHaveACoresTime) {
  const Machine machine = bare(2, 4);
  AllowedCores allowed = bound_to(machine, {1, 2, 3});
  for (const auto& [limit, cores] : {std::pair(2.9, 2), {2.0, 2}, {0.5, 1}, {64.0, 3}}) {
    allowed.cpu_limit = limit;
    EXPECT_EQ(usable_cores(machine, allowed), cores) << limit;
  }
}

}  // namespace
}  // namespace polyring
