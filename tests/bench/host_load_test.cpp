// What else hosts did, from copies of the kernel's files and from what ranks say.
#include "bench/record/host_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "bench/contenders/contenders.hpp"
#include "bench/record/cpu_clock.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(CpuUse, IsReadFromTheKernelsCounters) {
  const examples::TemporaryFolder folder;
  EXPECT_EQ(cpu_use(folder.path()).busy, Seconds{});
  std::filesystem::create_directories(folder / "proc");
  std::ofstream(folder / "proc/stat") << "cpu  100 20 30 4000 500 6 7 80 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
  const CpuUse use = cpu_use(folder.path());
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(use.busy.value * ticks, 100 + 20 + 30)
      << "idle, waiting, interrupts and stolen time are none";
  EXPECT_DOUBLE_EQ(use.stolen.value * ticks, 80);
  EXPECT_GT(use.own, Seconds{});
}

TEST(CpuClock, IsItsDriversOrThatOfCpuinfo) {
  const examples::TemporaryFolder folder;
  EXPECT_EQ(clock_MHz(folder.path(), 1), std::nullopt);
  std::filesystem::create_directories(folder / "proc");
  std::ofstream(folder / "proc/cpuinfo")
      << "processor\t: 0\ncpu MHz\t\t: 2299.998\n\nprocessor\t: 1\nmodel\t: 79\ncpu MHz\t\t: 1200.5\n\n"
         "processor\t: 10\ncpu MHz\t\t: 0.000\n";
  EXPECT_EQ(clock_MHz(folder.path(), 1), 1200.5);
  EXPECT_EQ(clock_MHz(folder.path(), 10), std::nullopt);
  EXPECT_EQ(clock_MHz(folder.path(), -1), std::nullopt) << "nobody knows where it runs";
  const std::filesystem::path driver = folder / "sys/devices/system/cpu/cpu1/cpufreq";
  std::filesystem::create_directories(driver);
  std::ofstream(driver / "scaling_cur_freq") << "1700000\n";
  EXPECT_EQ(clock_MHz(folder.path(), 1), 1700);
  EXPECT_EQ(clock_MHz(folder.path(), 0), 2299.998);
  std::ofstream(folder / "proc/cpuinfo") << "processor\t: 0\ncpu\t\t: POWER8NVL\nclock\t\t: 3490.000000MHz\n";
  EXPECT_EQ(clock_MHz(folder.path(), 0), 3490);
}

RankLoad rank_on(const char* machine, double busy_s, double own_s) {
  RankLoad load;
  load.elapsed_s = 10;
  load.used.busy = {busy_s};
  load.used.own = {own_s};
  load.cpus = 4;
  load.allowed_cpus = 1;
  std::string(machine).copy(load.machine, sizeof load.machine - 1);
  return load;
}

std::vector<HostConditions> conditions_of(const std::vector<RankLoad>& ranks) {
  std::vector<std::string> hosts;
  for (const RankLoad& rank : ranks) hosts.push_back(std::string("host-") + rank.machine);
  return host_conditions(ranks, hosts);
}

TEST(HostConditions, AreOneForEachMachine) {
  const auto conditions = conditions_of(
      {rank_on("a", 25, 9), rank_on("b", 20, 10), rank_on("a", 25, 10), rank_on("b", 20, 10.5)});
  ASSERT_THAT(conditions, SizeIs(2));
  EXPECT_EQ(conditions[0].host, "host-a");
  EXPECT_EQ(conditions[0].ranks, 2);
  EXPECT_DOUBLE_EQ(conditions[0].own_cpus, 1.9);
  EXPECT_DOUBLE_EQ(conditions[0].other_cpus, 0.6);
  EXPECT_EQ(conditions[1].host, "host-b");
  EXPECT_DOUBLE_EQ(conditions[1].other_cpus, 0) << "counters are coarse";
}

/// Emulated hosts, containers: they see the counters of one kernel.
TEST(HostConditions, OfHostsOfOneMachineAreTogether) {
  const std::vector<RankLoad> ranks{rank_on("a", 25, 10), rank_on("a", 25, 10)};
  const std::vector<std::string> hosts{"node0", "node1"};
  const auto conditions = host_conditions(ranks, hosts);
  ASSERT_THAT(conditions, SizeIs(1));
  EXPECT_EQ(conditions[0].host, "node0 and 1 more host of its machine");
  EXPECT_DOUBLE_EQ(conditions[0].other_cpus, 0.5);
}

TEST(HostConditions, OfThreadsCountTheirProcessOnce) {
  std::vector<RankLoad> ranks{rank_on("a", 25, 20), rank_on("a", 25, 20)};
  ranks[1].first_of_process = false;
  EXPECT_DOUBLE_EQ(conditions_of(ranks)[0].own_cpus, 2);
}

TEST(HostConditions, HaveTheStrictestLimits) {
  std::vector<RankLoad> ranks{rank_on("a", 25, 10), rank_on("a", 25, 10), rank_on("a", 25, 10)};
  ranks[0].allowed_cpus = 4;
  EXPECT_EQ(conditions_of(ranks)[0].cpu_limit, std::nullopt);
  ranks[1].cpu_limit = 3;
  ranks[2].cpu_limit = 1.5;
  ranks[1].throttled_s = 2;
  const HostConditions conditions = conditions_of(ranks)[0];
  EXPECT_EQ(conditions.cpu_limit, 1.5);
  EXPECT_EQ(conditions.throttled_s, 2);
  EXPECT_EQ(conditions.least_cpus_of_rank, 1);
  EXPECT_EQ(conditions.most_cpus_of_rank, 4);
}

TEST(HostConditions, HaveTheClocksOfTheirRanksCpus) {
  std::vector<RankLoad> ranks{rank_on("a", 25, 10), rank_on("a", 25, 10), rank_on("b", 25, 10),
                              rank_on("a", 25, 10)};
  ranks[0].clock_MHz = 2300;
  ranks[1].clock_MHz = 1200;
  const auto conditions = conditions_of(ranks);
  EXPECT_EQ(conditions[0].least_clock_MHz, 1200);
  EXPECT_EQ(conditions[0].most_clock_MHz, 2300);
  EXPECT_EQ(conditions[1].least_clock_MHz, std::nullopt);
}

HostConditions quiet() {
  HostConditions host;
  host.host = "node0";
  host.ranks = 4;
  host.cpus = 4;
  host.elapsed_s = 10;
  host.own_cpus = 4;
  return host;
}

std::vector<std::string> doubts_about(const HostConditions& host) { return doubts(std::span(&host, 1)); }

TEST(Doubts, AreNoneOnAQuietHost) {
  HostConditions host = quiet();
  host.other_cpus = 0.05;
  host.stolen_cpus = 0.05;
  host.cpu_limit = 4;
  EXPECT_THAT(doubts_about(host), IsEmpty());
}

TEST(Doubts, AreOfWhatCollidesWithTheRanks) {
  HostConditions host = quiet();
  host.other_cpus = 0.2;
  EXPECT_THAT(doubts_about(host),
              ElementsAre(HasSubstr("node0: other programs used 0.2 of its 4 CPUs while 4 ranks")));
  host.ranks = 3;
  EXPECT_THAT(doubts_about(host), IsEmpty()) << "a CPU was free for them";
  host.other_cpus = 1.2;
  EXPECT_THAT(doubts_about(host), SizeIs(1));
  host.ranks = 9;
  host.other_cpus = 0.2;
  EXPECT_THAT(doubts_about(host), SizeIs(1)) << "ranks that share CPUs leave none free";
}

TEST(Doubts, AreOfTimeThatAHypervisorOrALimitTook) {
  HostConditions host = quiet();
  host.stolen_cpus = 0.5;
  host.throttled_s = 3;
  EXPECT_THAT(doubts_about(host),
              ElementsAre(HasSubstr("its hypervisor gave the time of 0.5 of its 4 CPUs"),
                          HasSubstr("a control group's limit held the ranks back for 3.00 s")));
  host.cpu_limit = 1.5;
  EXPECT_THAT(doubts_about(host)[1], HasSubstr("a control group's limit of 1.5 CPUs"));
}

TEST(Doubts, AreOfGloosThreadWhereItSharesACore) {
  const std::vector<std::string> with_gloo{"multi-ring", "gloo:ring"};
  const std::vector<std::string> without{"multi-ring", "mpi"};
  std::vector<HostConditions> hosts{quiet(), quiet()};
  for (HostConditions& host : hosts) host.least_cpus_of_rank = host.cpus = 8;
  EXPECT_EQ(doubt_of(with_gloo, hosts), std::nullopt) << "four ranks have eight CPUs";
  hosts[1].ranks = 5;
  EXPECT_THAT(doubt_of(with_gloo, hosts).value_or(""), HasSubstr("Gloo has a thread of its own"));
  EXPECT_EQ(doubt_of(without, hosts), std::nullopt);
  hosts[1].ranks = 4;
  hosts[0].least_cpus_of_rank = 1;
  EXPECT_NE(doubt_of(with_gloo, hosts), std::nullopt) << "a rank is bound to one CPU";
}

TEST(Doubts, AreNoneOfAMoment) {
  HostConditions host = quiet();
  host.elapsed_s = 0.1;
  host.other_cpus = 2;
  host.throttled_s = 1;
  EXPECT_THAT(doubts_about(host), IsEmpty());
}

}  // namespace
}  // namespace polyring
