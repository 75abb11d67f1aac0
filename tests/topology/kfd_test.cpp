#include "topology/inventory/probe/kfd.hpp"

#include "tests/topology/sysfs_tree.hpp"

namespace polyring::probe {
namespace {

using ::testing::HasSubstr;
using testing::SysfsTree;

/// The folders of kfd for two processors (nodes 0 and 1) and four GPUs (2 to 5), at 0000:c1:00.0 and so on.
void fill(const SysfsTree& tree) {
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  for (int cpu = 0; cpu < 2; ++cpu)
    tree.write(fmt::format("{}{}/properties", nodes, cpu), "cpu_cores_count 64\nsimd_count 0\nlocation_id 0");
  for (int gpu = 0; gpu < 4; ++gpu) {
    tree.write(fmt::format("{}{}/properties", nodes, 2 + gpu),
               fmt::format("cpu_cores_count 0\nsimd_count 440\nlocation_id {}\ndomain 0", (0xc1 + gpu) << 8));
  }
  const auto link = [&](int from, int to, int number, int type, int weight, int megabytes) {
    tree.write(fmt::format("{}{}/io_links/{}/properties", nodes, from, number),
               fmt::format("type {}\nnode_from {}\nnode_to {}\nweight {}\nmin_bandwidth 0\nmax_bandwidth {}",
                           type, from, to, weight, megabytes));
  };
  link(2, 0, 0, 2, 20, 64000);    // PCIe
  link(2, 3, 1, 11, 15, 200000);  // four links in one package
  link(3, 2, 0, 11, 15, 200000);
  link(2, 4, 2, 11, 15, 50000);
  link(4, 2, 0, 11, 15, 50000);
  link(2, 5, 3, 11, 30, 0);  // two hops
  link(4, 5, 1, 11, 15, 0);  // an older driver, which does not know the bandwidth
  link(5, 4, 0, 11, 15, 0);
  link(5, 1, 1, 11, 13, 36000);  // to a processor
}

Machine machine_with_gpus() {
  Machine machine;
  machine.packages = {{"package0", {}, 64, {}, {}, {0}}, {"package1", {}, 64, {}, {}, {1}}};
  for (int i = 0; i < 4; ++i)
    machine.gpus.push_back(
        {fmt::format("gpu{}", i), "", fmt::format("0000:c{}:00.0", 1 + i), -1, -1, {}, {}});
  return machine;
}

TEST(Kfd, HasTheDirectLinks) {
  const SysfsTree tree;
  fill(tree);
  Machine machine = machine_with_gpus();
  const ProbeSource source = add_xgmi(Sysfs(tree.path()), machine);
  EXPECT_TRUE(source.read);
  EXPECT_THAT(source.detail, HasSubstr("4 GPUs, 4 xGMI links"));
  const auto gigabytes = [&](DeviceId from, DeviceId to) {
    for (const Link& link : machine.links) {
      if (link.from == from && link.to == to && link.kind == LinkKind::xgmi)
        return link.bandwidth.gigabytes_per_second();
    }
    return -1.0;
  };
  const auto gpu = [](int index) { return DeviceId{DeviceKind::gpu, index}; };
  EXPECT_EQ(machine.links.size(), 4u);
  EXPECT_DOUBLE_EQ(gigabytes(gpu(0), gpu(1)), 200);
  EXPECT_DOUBLE_EQ(gigabytes(gpu(0), gpu(2)), 50);
  EXPECT_DOUBLE_EQ(gigabytes(gpu(2), gpu(3)), 0);
  EXPECT_DOUBLE_EQ(gigabytes(gpu(3), {DeviceKind::package, 1}), 36);
}

/// From the first GPU to the second, in GB/s; -1 when there is none.
double first_link(const Machine& machine) {
  const auto link = std::ranges::find_if(machine.links, [](const Link& found) {
    return found.from == DeviceId{DeviceKind::gpu, 0} && found.to == DeviceId{DeviceKind::gpu, 1};
  });
  return link == machine.links.end() ? -1 : link->bandwidth.gigabytes_per_second();
}

/// The same where GPUs are of this gfx_target_version, and the driver says `megabytes`.
double gigabytes_between(int version, int megabytes) {
  const SysfsTree tree;
  fill(tree);
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  for (int node = 2; node < 6; ++node)
    tree.write(fmt::format("{}{}/properties", nodes, node),
               fmt::format("simd_count 440\nlocation_id {}\ndomain 0\ngfx_target_version {}",
                           (0xc1 + node - 2) << 8, version));
  for (const auto& [from, to, number] : {std::tuple(2, 3, 1), std::tuple(3, 2, 0)})
    tree.write(
        fmt::format("{}{}/io_links/{}/properties", nodes, from, number),
        fmt::format("type 11\nnode_from {}\nnode_to {}\nweight 15\nmax_bandwidth {}", from, to, megabytes));
  Machine machine = machine_with_gpus();
  add_xgmi(Sysfs(tree.path()), machine);
  return first_link(machine);
}

TEST(Kfd, KnowsWhatDriversTakeForAnMi200sLink) {
  EXPECT_DOUBLE_EQ(gigabytes_between(90010, 200000), 200);  // MI250X, four links
  EXPECT_DOUBLE_EQ(gigabytes_between(90402, 50000), 64);    // MI300X, an older driver
  EXPECT_DOUBLE_EQ(gigabytes_between(90402, 64000), 64);    // the same, a newer one
  EXPECT_DOUBLE_EQ(gigabytes_between(90500, 50000), 76.8);  // MI350X
  EXPECT_DOUBLE_EQ(gigabytes_between(90008, 0), 46);        // MI100, unknown to drivers
  EXPECT_DOUBLE_EQ(gigabytes_between(120001, 50000), 50);   // a GPU that is not known
}

TEST(Kfd, CountsPartitionedGpusOnce) {
  const SysfsTree tree;
  fill(tree);
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  Machine whole = machine_with_gpus();
  add_xgmi(Sysfs(tree.path()), whole);
  EXPECT_TRUE(whole.remarks.empty());
  // Each has a second partition, which is joined to the first of the next GPU as the first is.
  for (int gpu = 0; gpu < 4; ++gpu)
    tree.write(fmt::format("{}{}/properties", nodes, 6 + gpu),
               fmt::format("simd_count 440\nlocation_id {}\ndomain 0", (0xc1 + gpu) << 8 | 1));
  tree.write(nodes + "6/io_links/0/properties",
             "type 11\nnode_from 6\nnode_to 3\nweight 15\nmax_bandwidth 100000");
  Machine machine = machine_with_gpus();
  EXPECT_THAT(add_xgmi(Sysfs(tree.path()), machine).detail, HasSubstr("4 GPUs, 4 xGMI links"));
  ASSERT_EQ(machine.remarks.size(), 1u);
  EXPECT_THAT(machine.remarks[0], HasSubstr("cuts the 4 GPUs into 8 partitions"));
  EXPECT_DOUBLE_EQ(first_link(machine), 100) << "the lesser counts";
}

TEST(Kfd, IsAbsentWithoutItsDriver) {
  const SysfsTree tree;
  Machine machine = machine_with_gpus();
  const ProbeSource source = add_xgmi(Sysfs(tree.path()), machine);
  EXPECT_FALSE(source.read);
  EXPECT_THAT(source.detail, HasSubstr("amdgpu"));
  EXPECT_TRUE(machine.links.empty());
}

TEST(Kfd, SaysWhichNodesMayNotBeRead) {
  const SysfsTree tree;
  fill(tree);
  tree.write("class/kfd/kfd/topology/nodes/6/properties", "");
  Machine machine = machine_with_gpus();
  EXPECT_THAT(add_xgmi(Sysfs(tree.path()), machine).detail, HasSubstr("1 of its nodes may not be read"));
}

/// Partitions of different GPUs, as of an MI308X in CPX mode: links, and of none what it carries.
TEST(Kfd, KnowsOfLinksThatItsDriverDoesNotMeasure) {
  const SysfsTree tree;
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  tree.write(nodes + "0/properties", "cpu_cores_count 4\nsimd_count 0\nlocation_id 0");
  const auto gpu = [&](int node, int bus, int partition) {
    tree.write(
        fmt::format("{}{}/properties", nodes, node),
        fmt::format("cpu_cores_count 0\nsimd_count 80\nlocation_id {}\ndomain 0", (bus << 8) + partition));
  };
  gpu(1, 0xc1, 0);
  gpu(2, 0xc1, 1);
  gpu(3, 0xc2, 0);
  gpu(4, 0xc2, 1);
  const auto link = [&](int from, int to, int weight, int megabytes) {
    tree.write(fmt::format("{}{}/io_links/{}/properties", nodes, from, to),
               fmt::format("type 11\nnode_from {}\nnode_to {}\nweight {}\nmax_bandwidth {}", from, to, weight,
                           megabytes));
  };
  link(1, 2, 13, 819200);  // inside a GPU
  Machine alone = machine_with_gpus();
  add_xgmi(Sysfs(tree.path()), alone);
  EXPECT_TRUE(alone.gpu_links_known) << "no two GPUs are joined";
  link(1, 3, 41, 0);
  link(3, 1, 41, 0);
  Machine machine = machine_with_gpus();
  add_xgmi(Sysfs(tree.path()), machine);
  EXPECT_FALSE(machine.gpu_links_known);
  EXPECT_TRUE(machine.links.empty());
}

}  // namespace
}  // namespace polyring::probe
