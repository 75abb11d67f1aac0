// Files of real machines, which are not part of the project: what each machine has was read off its XML by
// hand.
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_matrix.hpp"
#include "topology/inventory/formats/probe_text.hpp"
#include "topology/inventory/formats/read_cluster.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;

struct RealMachine {
  const char* file;
  std::size_t packages;
  std::size_t cores;
  std::size_t gpus;
  const char* gpu_model;
  std::size_t infiniband;     // NICs
  std::size_t infiniband_up;  // of these
  double nvlink_gigabytes;    // between gpu0 and gpu1; 0 where the file has none
  double nvlink_to_package;
};

void PrintTo(const RealMachine& machine, std::ostream* out) { *out << machine.file; }

class RealMachines : public ::testing::TestWithParam<RealMachine> {
 protected:
  void SetUp() override { POLYRING_NEEDS_TOPOLOGIES(); }
  static Cluster cluster() { return read_cluster(testing::topologies() / "hwloc" / GetParam().file); }
};

double link_between(const Machine& machine, DeviceId a, DeviceId b, LinkKind kind) {
  for (const Link& link : machine.links) {
    const bool joins = (link.from == a && link.to == b) || (link.from == b && link.to == a);
    if (joins && link.kind == kind) return link.bandwidth.gigabytes_per_second();
  }
  return 0;
}

TEST_P(RealMachines, HaveTheirDevices) {
  const Machine machine = cluster().host(0);
  EXPECT_EQ(machine.packages.size(), GetParam().packages);
  std::size_t cores = 0;
  for (const Package& package : machine.packages) {
    cores += static_cast<std::size_t>(package.cores);
    EXPECT_GT(package.memory.value, std::uint64_t{1} << 30);
    EXPECT_FALSE(package.numa_nodes.empty());
  }
  EXPECT_EQ(cores, GetParam().cores);
  ASSERT_EQ(machine.gpus.size(), GetParam().gpus);
  EXPECT_THAT(machine.gpus[0].model, HasSubstr(GetParam().gpu_model));
  std::size_t infiniband = 0;
  std::size_t up = 0;
  for (const Nic& nic : machine.nics) {
    infiniband += nic.kind == NicKind::infiniband ? 1u : 0u;
    up += nic.up() ? 1u : 0u;
  }
  EXPECT_EQ(infiniband, GetParam().infiniband);
  EXPECT_EQ(up, GetParam().infiniband_up);
}

TEST_P(RealMachines, HaveTheNvlinksOfTheFile) {
  const Machine machine = cluster().host(0);
  constexpr DeviceId kGpu0{DeviceKind::gpu, 0};
  EXPECT_DOUBLE_EQ(link_between(machine, kGpu0, {DeviceKind::gpu, 1}, LinkKind::nvlink),
                   GetParam().nvlink_gigabytes);
  EXPECT_DOUBLE_EQ(link_between(machine, kGpu0, {DeviceKind::package, 0}, LinkKind::nvlink),
                   GetParam().nvlink_to_package);
}

TEST_P(RealMachines, PrintAndReadBack) {
  const Cluster first = cluster();
  EXPECT_NO_THROW(first.validate());
  EXPECT_THAT(probe_text(first), HasSubstr(first.host(0).packages[0].name));
  EXPECT_THAT(probe_matrix(first), HasSubstr("NUMA"));
  const std::string json = probe_json(first);
  EXPECT_EQ(probe_json(parse_probe_json(json, "memory")), json);
}

INSTANTIATE_TEST_SUITE_P(
    Hwloc, RealMachines,
    ::testing::Values(
        RealMachine{"power8gpudistances.v2.xml", 2, 8, 4, "Tesla P100-SXM2-16GB", 0, 0, 40, 40},
        RealMachine{"mpibind-coral-ea-hwloc1.xml", 2, 20, 4, "10de:15f9", 2, 2, 0, 0},
        RealMachine{"flux-core-sierra.xml", 2, 44, 4, "Tesla V100-SXM2-16GB", 2, 2, 0, 0},
        RealMachine{"flux-sched-sierra2-4n-0.xml", 2, 44, 4, "Tesla V100-SXM2-16GB", 2, 2, 0, 0},
        RealMachine{"flux-sched-sierra2-4n-1.xml", 2, 44, 4, "Tesla V100-SXM2-16GB", 2, 2, 0, 0},
        RealMachine{"flux-sched-sierra2-4n-2.xml", 2, 44, 4, "Tesla V100-SXM2-16GB", 2, 2, 0, 0},
        RealMachine{"flux-sched-sierra2-4n-3.xml", 2, 44, 4, "Tesla V100-SXM2-16GB", 2, 2, 0, 0},
        RealMachine{"flux-core-ipa20.xml", 2, 112, 4, "NVIDIA H100 80GB HBM3", 4, 1, 150, 0},
        RealMachine{"mpibind-cts1-pascal.xml", 2, 36, 2, "Tesla P100-PCIE-16GB", 1, 1, 0, 0},
        RealMachine{"mpibind-epyc-corona.xml", 2, 48, 4, "Vega 20", 1, 1, 0, 0},
        RealMachine{"32em64t-2n8c2t-pci-normalio.v2.xml", 2, 16, 4, "Tesla M2075", 1, 1, 0, 0},
        RealMachine{"prrte-test-topo2.xml", 1, 24, 1, "Vega 20", 1, 1, 0, 0}),
    [](const auto& row) {
      std::string name = row.param.file;
      std::ranges::replace_if(
          name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

TEST(RealMachinesFolder, HoldsNoFileWithoutExpectations) {
  POLYRING_NEEDS_TOPOLOGIES();
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::topologies() / "hwloc")) {
    files += entry.path().extension() == ".xml" ? 1u : 0u;
  }
  EXPECT_EQ(files, 12u);
}

TEST(RealMachinesBuses, OfIbmsAreThePublishedOnes) {
  POLYRING_NEEDS_TOPOLOGIES();
  const auto bus = [](const char* file) {
    const Machine machine = read_cluster(testing::topologies() / "hwloc" / file).host(0);
    return link_between(machine, {DeviceKind::package, 0}, {DeviceKind::package, 1}, LinkKind::socket_bus);
  };
  EXPECT_DOUBLE_EQ(bus("power8gpudistances.v2.xml"), 38.4);
  EXPECT_DOUBLE_EQ(bus("mpibind-coral-ea-hwloc1.xml"), 38.4);
  EXPECT_DOUBLE_EQ(bus("flux-core-sierra.xml"), 64);
  EXPECT_DOUBLE_EQ(bus("flux-core-ipa20.xml"), 0) << "unknown: UPI";
}

TEST(RealMachinesPaths, OfTheS822lcAreThoseOfThePreset) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Machine machine = read_cluster(testing::topologies() / "hwloc/power8gpudistances.v2.xml").host(0);
  const auto type = [&](int a, int b) {
    return find_path(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b})->type;
  };
  EXPECT_EQ(type(0, 1), PathType::nvl);
  EXPECT_EQ(type(2, 3), PathType::nvl);
  EXPECT_EQ(type(0, 2), PathType::sys);
  EXPECT_EQ(type(1, 3), PathType::sys);
}

TEST(RealMachinesPaths, OfTheXe8640FollowItsSwitches) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Machine machine = read_cluster(testing::topologies() / "hwloc/flux-core-ipa20.xml").host(0);
  ASSERT_EQ(machine.switches.size(), 4u);
  ASSERT_EQ(machine.nics[2].name, "mlx5_0");
  const auto path = find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::nic, 2});
  EXPECT_EQ(path->type, PathType::pix);
  EXPECT_NEAR(path->bandwidth.gigabytes_per_second(), 31.5077, 1e-3);
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 3}, {DeviceKind::nic, 2})->type, PathType::sys);
}

TEST(RealMachinesPaths, OfTheAc922ReachBothPortsFromBothSockets) {
  POLYRING_NEEDS_TOPOLOGIES();
  const Machine machine = read_cluster(testing::topologies() / "hwloc/flux-core-sierra.xml").host(0);
  for (int gpu = 0; gpu < 4; ++gpu) {
    for (int nic = 0; nic < 2; ++nic) {
      EXPECT_EQ(find_path(machine, {DeviceKind::gpu, gpu}, {DeviceKind::nic, nic})->hops.size(), 2u);
    }
  }
}

}  // namespace
}  // namespace polyring
