// How the libraries' ranks plan by topology: ranks are threads, on hosts by name where the system lets them.
#include "collectives/library/topology/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/thread_world.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using library::plan_by_topology;
using library::Planning;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing::TemporaryFolder;

constexpr int kRanks = 4;

/// A variable of the environment, until the object ends.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

/// What each rank is told: how it plans, or why it does not.
struct Outcome {
  std::vector<std::string> texts;
  std::vector<PlanChoice> choices;  // for an allreduce of 64 MiB
};

/// `hosts`: each rank's; empty: the machine's name. `gpus`: bus addresses.
Outcome planned(const std::vector<std::string>& hosts, const std::vector<std::string>& gpus = {}) {
  ThreadTeam team(kRanks);
  std::mutex mutex;
  Outcome outcome;
  const auto run = [&](Rank rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (!hosts.empty()) {
      if (unshare(CLONE_NEWUTS) != 0) FAIL() << "no name of its own for a rank's host";
      if (sethostname(hosts[at].data(), hosts[at].size()) != 0) FAIL() << "no such name for a host";
    }
    std::string text;
    std::optional<PlanChoice> choice;
    try {
      const ThreadWorld world(team, rank);
      const Planning planning = plan_by_topology(world, gpus.empty() ? "" : gpus[at]);
      text = planning.text;
      CommunicatorOptions options;
      options.planner = planning.planner.get();
      const Communicator communicator(world, options);
      choice = communicator.plan({.count = 16 << 20});
      EXPECT_EQ(communicator.plan({.count = (16 << 20) + 12345}).plan, choice->plan)
          << "of the same power of two";
      world.barrier();
    } catch (const AgreedError& error) {
      text = fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
    }
    const std::lock_guard lock(mutex);
    outcome.texts.push_back(text);
    if (choice) outcome.choices.push_back(*choice);
  };
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kRanks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

bool may_name_hosts() {
  bool may = false;
  std::thread([&] { may = unshare(CLONE_NEWUTS) == 0; }).join();
  return may;
}

std::string address(int gpu) { return fmt::format("0000:{:02x}:00.0", gpu + 1); }

/// Hosts with one NIC of 100 Gbit/s.
std::string two_hosts() {
  std::vector<Inventory> parts;
  for (const char* name : {"node0", "node1"}) {
    Machine machine = preset("p100-roce", 1).host(0);
    machine.name = name;
    parts.push_back(inventory_of(machine));
  }
  return probe_json(merged(std::move(parts)));
}

const std::vector<std::string> kTwoHosts{"node0", "node0", "node1", "node1"};

TEST(LibraryPlans, FollowRulesOnOneHost) {
  EXPECT_THAT(planned({}).texts,
              AllOf(SizeIs(kRanks), Each("by rules, since all ranks share the memory of one host")));
  const Variable none("POLYRING_CLUSTER", "none");
  EXPECT_THAT(planned({}).texts, AllOf(SizeIs(kRanks), Each("by rules, since POLYRING_CLUSTER is none")));
}

TEST(LibraryPlans, FollowTheFileOfTheCluster) {
  if (!may_name_hosts()) GTEST_SKIP() << "skipped: hosts of several names need root";
  const TemporaryFolder folder;
  const auto file = folder.write("cluster.json", two_hosts());
  const Variable named("POLYRING_CLUSTER", file.string());
  const Outcome outcome = planned(kTwoHosts);
  EXPECT_THAT(outcome.texts,
              AllOf(SizeIs(kRanks), Each(fmt::format("by the links that '{}' describes", file.string()))));
  ASSERT_THAT(outcome.choices, SizeIs(kRanks));
  for (const PlanChoice& choice : outcome.choices) {
    EXPECT_EQ(choice.source, PlanSource::price);
    EXPECT_EQ(choice.plan, outcome.choices.front().plan);
  }
}

TEST(LibraryPlans, ProbeSeveralHosts) {
  if (!may_name_hosts()) GTEST_SKIP() << "skipped: hosts of several names need root";
  // Whether this machine's NIC has a speed is its own affair; all ranks find the same.
  const Outcome outcome = planned(kTwoHosts);
  ASSERT_THAT(outcome.texts, SizeIs(kRanks));
  EXPECT_THAT(outcome.texts, Each(outcome.texts.front()));
  EXPECT_THAT(outcome.texts.front(),
              ::testing::AnyOf("by the links that the probe describes", StartsWith("by rules, since ")));
  EXPECT_THAT(outcome.texts.front(), ::testing::Not(HasSubstr("there is no")));
}

TEST(LibraryPlans, FollowRulesWhereRanksOfAHostAreApart) {
  if (!may_name_hosts()) GTEST_SKIP() << "skipped: hosts of several names need root";
  EXPECT_THAT(planned({"node0", "node1", "node0", "node1"}).texts,
              AllOf(SizeIs(kRanks), Each(HasSubstr("not numbered one after another"))));
}

/// Of all ranks.
std::string refused(const std::string& setting) {
  const Variable named("POLYRING_CLUSTER", setting);
  const Outcome outcome = planned({}, {address(0), address(1), address(2), address(3)});
  EXPECT_THAT(outcome.texts, AllOf(SizeIs(kRanks), Each(outcome.texts.front())));
  EXPECT_THAT(outcome.choices, SizeIs(0));
  return outcome.texts.front();
}

/// A DGX-1 whose GPUs have addresses.
std::string dgx1() {
  Machine machine = preset("dgx1-v100", 1).host(0);
  for (int gpu = 0; gpu < machine.ranks(); ++gpu)
    machine.gpus[static_cast<std::size_t>(gpu)].pci = address(gpu);
  return probe_json(inventory_of(machine));
}

TEST(LibraryPlans, FollowTheLinksOfGpus) {
  const TemporaryFolder folder;
  const Variable named("POLYRING_CLUSTER", folder.write("cluster.json", dgx1()).string());
  const Outcome outcome = planned({}, {address(0), address(1), address(2), address(3)});
  EXPECT_THAT(outcome.texts, AllOf(SizeIs(kRanks), Each(StartsWith("by the links that"))));
  ASSERT_THAT(outcome.choices, SizeIs(kRanks));
  EXPECT_EQ(outcome.choices.front().source, PlanSource::price);
}

TEST(LibraryPlans, FollowRulesForGpusThatNoFileDescribes) {
  EXPECT_THAT(planned({}, {address(0), address(1), address(2), address(3)}).texts,
              AllOf(SizeIs(kRanks), Each("by rules, since only POLYRING_CLUSTER tells how GPUs are linked")));
}

TEST(LibraryPlans, AreRefusedOnAllRanksWhereTheFileCannotBeUsed) {
  const TemporaryFolder folder;
  EXPECT_THAT(refused("/nowhere/cluster.json"),
              AllOf(StartsWith("6: POLYRING_CLUSTER: "), HasSubstr("'/nowhere/cluster.json'")));
  EXPECT_THAT(refused(folder.write("text", "no JSON").string()), StartsWith("6: POLYRING_CLUSTER: '"));
  EXPECT_THAT(refused(folder.path().string()), StartsWith("6: POLYRING_CLUSTER: "));
  EXPECT_THAT(
      refused(folder.write("minsky.json", probe_json(inventory_of(preset("minsky", 1).host(0)))).string()),
      HasSubstr("has no GPU 0000:01:00.0"));
  Cluster unequal = preset("minsky", 1);
  unequal.groups.push_back(preset("dgx1-v100", 1).groups.front());
  EXPECT_THAT(refused(folder.write("unequal.json", probe_json(inventory_of(unequal))).string()),
              HasSubstr("has no host '"));
}

}  // namespace
}  // namespace polyring
