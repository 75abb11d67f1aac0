// What today's machines allow: bounds by hand from cited figures, and times over an NVLink domain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "collectives/schedule/bound.hpp"
#include "collectives/schedule/candidates.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/in_network.hpp"
#include "simulation/price_planner.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/presets.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Bytes kGigabyte{1'000'000'000};

struct Allows {
  std::string_view name;
  double inside;   // GB/s of bus bandwidth over what a ring uses; 0: one GPU
  double network;  // GB/s out of a host
};

// Inside: NVLinks of a GPU x their rate, or its PCIe. Network: NICs x their rate, InfiniBand's less 3 %.
TEST(TodaysMachines, AllowWhatTheirLinksAddUpTo) {
  for (const Allows& machine :
       {Allows{"dgx-h200", 18 * 25, 8 * 48.5}, Allows{"dgx-b200", 18 * 50, 8 * 48.5},
        Allows{"gh200", 0, 48.5}, Allows{"gh200-quad", 3 * 150, 4 * 24.2}, Allows{"mi300x", 7 * 64, 8 * 48.5},
        Allows{"aws-p4d", 12 * 25, 4 * 12.5}, Allows{"aws-p5", 18 * 25, 32 * 12.5},
        Allows{"azure-nd-h100-v5", 18 * 25, 8 * 48.5}, Allows{"gcp-a3-mega", 18 * 25, 8 * 25},
        Allows{"p100-roce", 15.75, 3.125}, Allows{"v100-roce", 15.75, 3.125}}) {
    const Cluster host = preset(machine.name, 1);
    const Bound inside = usual_bound(Collective::allreduce, host, kGigabyte);
    EXPECT_NEAR(bus_bandwidth(kGigabyte, host.ranks(), inside.time).gigabytes_per_second(), machine.inside,
                1e-9)
        << machine.name << ": " << inside.cut;
    const Bound network = network_bound(preset(machine.name, 2), kGigabyte);
    EXPECT_NEAR(network.time.value, 1 / machine.network, 1e-12) << machine.name << ": " << network.cut;
  }
}

TEST(NvlinkDomain, IsBoundByItsNvlinksAndBetweenDomainsByAllNics) {
  const auto usual = [](int hosts) {
    return usual_bound(Collective::allreduce, preset("gb200-nvl72", hosts), kGigabyte);
  };
  EXPECT_NEAR(usual(18).time.value, 2 * 71.0 / 72 / 900, 1e-12);
  EXPECT_EQ(usual(18).cut, "each GPU reaches the others only over 18 x NVLink of 50.0 GB/s: 900 GB/s");
  EXPECT_NEAR(usual(1).time.value, 2 * 3.0 / 4 / 900, 1e-12);
  EXPECT_EQ(network_bound(preset("gb200-nvl72", 18), kGigabyte).time.value, 0) << "NICs join domains only";

  const Bound network = network_bound(preset("gb200-nvl72", 36), kGigabyte);
  EXPECT_NEAR(network.time.value, 1 / (72 * 48.5), 1e-15);
  EXPECT_EQ(network.cut, "the hosts of an NVLink domain share their NICs: 3.49 TB/s");
  const Bound uneven = network_bound(preset("gb200-nvl72", 20), kGigabyte);
  EXPECT_NEAR(uneven.time.value, 1 / (8 * 48.5), 1e-12) << "2 hosts of the second domain";
  // Out of a GPU also lead 225 GB/s of NVLink-C2C, to the NICs and the others.
  EXPECT_NEAR(allreduce_bound(preset("gb200-nvl72", 36), kGigabyte).time.value, 2 * 143.0 / 144 / (900 + 225),
              1e-12);
}

TEST(NvlinkDomain, IsTheNearestDimension) {
  EXPECT_THAT(natural_dims(preset("gb200-nvl72", 18)), ElementsAre(72));
  EXPECT_THAT(natural_dims(preset("gb200-nvl72", 72)), ElementsAre(72, 4));
  EXPECT_THAT(natural_dims(with_ranks(preset("gb200-nvl72", 1), 256)), ElementsAre(64, 4));
  EXPECT_THAT(natural_dims(preset("gb200-nvl72", 20)), ElementsAre(4, 20)) << "hosts that fill no domains";
  Cluster leaves = preset("gb200-nvl72", 144);
  leaves.fabric.hosts_per_leaf = 36;
  EXPECT_THAT(natural_dims(leaves), ElementsAre(72, 2, 4));
  EXPECT_EQ(grid_of(preset("gb200-nvl72", 36)), (RankGrid{144, 72, 2}));
}

TEST(NvlinkDomain, TakesARingAsLongAsItsClosedForm) {
  const Cluster cluster = preset("gb200-nvl72", 18);
  const Router router(cluster);
  const Count count = 72 * 1'000'000;
  const Simulation ring = simulate(make_schedule({"ring", {72}}, 72, count, 4), cluster, router, 4);
  EXPECT_NEAR(ring.time.value, 2 * 71 * (0.6e-6 + 4e6 / 900e9), 1e-12);
}

TEST(NvlinkDomain, IsPlannedOverNvlinksInsideAndAllNicsBetween) {
  const Count count = 1 << 26;
  for (const int hosts : {18, 36}) {
    const Cluster cluster = preset("gb200-nvl72", hosts);
    const Router router(cluster);
    const SimulatedPlan best =
        choose_plan(modelled_problem(kTunedAlgorithm, cluster, count, 4), cluster, router);
    int ranks = 1;
    for (const int dim : best.plan.dims)
      if (ranks < 72) ranks *= dim;
    EXPECT_EQ(ranks, 72) << "dimensions end where the domain does: " << to_text(best.plan);
    const double usual = 2 * 71.0 / 72 * 4 * static_cast<double>(count) / 900e9;
    EXPECT_GE(best.simulation.time.value, usual * (1 - 1e-9));
    EXPECT_LT(best.simulation.time.value, 1.15 * usual) << to_text(best.plan);
  }
}

TEST(NvlinkDomain, IsOneNodeToNcclAndToSwitchesThatReduce) {
  const Bytes payload{256 << 20};
  const VendorRun rack = nccl_run(preset("gb200-nvl72", 18), payload);
  EXPECT_THAT(rack.inputs.at(2).fact, HasSubstr("18 channels")) << "18 NVLinks of 40.1 GB/s";
  const VendorRun racks = nccl_run(preset("gb200-nvl72", 36), payload);
  EXPECT_EQ(racks.plan.ranks(), 144);
  EXPECT_EQ(racks.plan.dims, (std::vector{72, 2}));
  // Host memory hangs on no NVSwitch.
  EXPECT_EQ(mpi_run(preset("gb200-nvl72", 18), payload).view.fabric.hosts_per_nvlink_domain, 0);

  const Count count = 1 << 24;
  const auto switched = [&](int hosts) {
    const Cluster cluster = preset("gb200-nvl72", hosts);
    return choose_in_network(cluster, Router(cluster), count, 4).simulation.time.value;
  };
  const Cluster one = preset("gb200-nvl72", 18);
  EXPECT_EQ(switched(18), choose_plan(modelled_problem(kTunedAlgorithm, one, count, 4), one, Router(one), {})
                              .simulation.time.value);
  EXPECT_GT(switched(36), 4 * static_cast<double>(count) / 72 / 48.5e9) << "each GPU its share by its NIC";
}

std::string refusal(std::string_view machine, int hosts) {
  try {
    nccl_run(preset(machine, hosts), kGigabyte);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return {};
}

TEST(Nccl, IsRefusedWhereItDoesNotRun) {
  EXPECT_THAT(refusal("mi300x", 16),
              HasSubstr("'AMD Instinct MI300X' is AMD's, and its RCCL is not modelled"));
  EXPECT_THAT(refusal("gb200-nvl72", 20), HasSubstr("20 hosts do not fill domains of 18"));
  for (const std::string_view name : preset_names()) {
    const Cluster cluster = preset(name, 2);
    EXPECT_EQ(why_no_nccl(cluster).empty(), name != "mi300x") << name;
    if (name == "mi300x") continue;
    EXPECT_EQ(refusal(name, 2), "");
  }
}

}  // namespace
}  // namespace polyring
