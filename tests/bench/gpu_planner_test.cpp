// Which plans ranks on GPUs take: the links between these decide, as a probe finds them or a calibration has
// them. Ranks are threads, and the GPUs those of presets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "base/error.hpp"
#include "bench/plans/job_planner.hpp"
#include "bench/record/calibration_file.hpp"
#include "bench/session/collective.hpp"
#include "collectives/runtime/communicator.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;

std::string address(int gpu) { return fmt::format("0000:{:02x}:00.0", gpu + 1); }

/// The ranks of the world on these GPUs of one such host.
JobHosts on(const World& world, Machine machine, const std::vector<int>& gpus) {
  for (int gpu = 0; gpu < machine.ranks(); ++gpu)
    machine.gpus[static_cast<std::size_t>(gpu)].pci = address(gpu);
  JobHosts hosts{cluster_of(std::move(machine), 1), {}};
  for (Rank rank = 0; rank < world.size(); ++rank)
    hosts.placement.push_back({rank, world.host(rank), address(gpus[static_cast<std::size_t>(rank)])});
  return hosts;
}

struct Chosen {
  Plan plan;
  PlanSource source = PlanSource::rules;
  std::string why_no_prices;
};

using Make = std::function<std::optional<JobHosts>(const World&)>;

/// What rank 0 of a job with so many ranks gets for an allreduce of float32; `make` says on which GPUs.
Chosen choose(int ranks, Bytes payload, const Make& make, const std::string& calibration = {}) {
  Chosen chosen;
  const ExitCode ended = run_on_threads(ranks, Seconds{60}, [&](World& world, Watchdog&) {
    const JobPlanner planner(calibration, world, make(world));
    CommunicatorOptions how;
    how.rules = world.wait_rules();
    const Communicator communicator(world, how);
    const CollectiveOf what{.count = static_cast<Count>(payload.value / 4)};
    const Problem problem = planner.problem(std::string(kTunedAlgorithm), communicator, what);
    const PlanChoice choice = planner.choose(problem, {});
    if (world.rank() == 0) chosen = {choice.plan, choice.source, planner.why_no_prices()};
    return ExitCode::ok;
  });
  EXPECT_EQ(ended, ExitCode::ok);
  return chosen;
}

Make gpus_of(const char* machine, const std::vector<int>& gpus) {
  return [=](const World& world) { return on(world, preset(machine, 1).host(0), gpus); };
}

constexpr Bytes kLarge{64 << 20};

TEST(GpuPlanner, FollowsTheLinksBetweenTheGpus) {
  // Where an NVSwitch joins all, each sends to each.
  const Chosen joined = choose(8, kLarge, gpus_of("dgx-a100", {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(joined.source, PlanSource::price) << joined.why_no_prices;
  EXPECT_EQ(to_text(joined.plan), "multi-ring 8, 1 lane, direct");
  // In a DGX-1 rings follow the NVLinks.
  const Chosen mesh = choose(8, kLarge, gpus_of("dgx1-v100", {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(mesh.plan.patterns, std::vector<std::string>{"ring"});
  EXPECT_EQ(mesh.plan.orders.size(), 6u);
  // Pairs on NVLink are a dimension of their own, with chunks that overlap.
  const Chosen pairs = choose(4, kLarge, gpus_of("minsky", {0, 1, 2, 3}));
  EXPECT_EQ(pairs.plan.dims, (std::vector{2, 2}));
  EXPECT_GT(pairs.plan.chunk.value, 0u);
  // The same GPUs where ranks that follow each other are not the pairs.
  const Chosen mixed = choose(4, kLarge, gpus_of("minsky", {0, 2, 1, 3}));
  EXPECT_NE(mixed.plan, pairs.plan);
  // In host memory none of that counts.
  const Chosen host = choose(4, kLarge, [](const World&) { return std::nullopt; });
  EXPECT_EQ(host.source, PlanSource::rules);
  EXPECT_EQ(to_text(host.plan), "multi-ring 4, 1 lane, direct");
}

TEST(GpuPlanner, TakesMessagesBetweenHostsWhole) {
  const Chosen chosen = choose(4, kLarge, [](const World& world) {
    JobHosts hosts = on(world, preset("minsky", 1).host(0), {0, 1, 0, 1});
    hosts.cluster.groups[0].count = 2;
    hosts.placement[2].host = hosts.placement[3].host = "another";
    return hosts;
  });
  EXPECT_EQ(chosen.source, PlanSource::price) << chosen.why_no_prices;
  EXPECT_EQ(chosen.plan.dims, (std::vector{2, 2}));
  EXPECT_GE(chosen.plan.chunk.value, 2u << 20) << "as if messages passed a core's cache";
}

TEST(GpuPlanner, HasNoPricesWhereLinksCannotBeTold) {
  const Chosen shared = choose(2, kLarge, gpus_of("minsky", {1, 1}));
  EXPECT_EQ(shared.source, PlanSource::rules);
  EXPECT_THAT(shared.why_no_prices, HasSubstr("ranks share GPU 0000:02:00.0"));
  const Chosen unknown = choose(2, kLarge, [](const World& world) {
    Machine machine = preset("minsky", 1).host(0);
    for (Link& link : machine.links) link.bandwidth = {};
    return on(world, machine, {0, 1});
  });
  EXPECT_EQ(unknown.source, PlanSource::rules);
  EXPECT_THAT(unknown.why_no_prices, HasSubstr("the speed of NVLink gpu0 - gpu1 is unknown"));
  EXPECT_EQ(choose(1, kLarge, gpus_of("minsky", {0})).why_no_prices, "") << "one rank sends nothing";
}

TEST(GpuPlanner, TakesTheLinksOfACalibration) {
  const testing::TemporaryFolder folder;
  CalibrationRecord record;
  record.device = DataDevice::cuda;
  record.calibration.fitted = {1, 0, 0, 0};
  record.calibration.range = {1, 1, {1}, {1}};
  record.calibration.links = {{LinkClass::nvlink, Seconds{1}, {}, 1, {}, {}}};
  const std::string slow = folder.write("slow.json", calibration_text(record));
  const Make quad = gpus_of("dgx1-v100", {0, 1, 2, 3});
  EXPECT_GT(choose(4, kLarge, quad).plan.lanes, 1);
  const Chosen calibrated = choose(4, kLarge, quad, slow);
  EXPECT_EQ(calibrated.source, PlanSource::price);
  EXPECT_EQ(to_text(calibrated.plan), "multi-ring 4, 1 lane, direct") << "each message takes a second";
}

}  // namespace
}  // namespace polyring
