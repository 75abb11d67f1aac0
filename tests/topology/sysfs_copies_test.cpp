// Copies of /sys that are not complete, or whose links have become files.
#include <filesystem>
#include <fstream>

#include "tests/topology/sysfs_tree.hpp"
#include "topology/inventory/compare.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/inventory/probe/sysfs.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SysfsTree;

/// A GPU and an InfiniBand adapter at one socket, an Ethernet adapter at the other.
void fill(const SysfsTree& tree) {
  tree.two_sockets();
  for (const std::string bridge :
       {"pci0000:00/0000:00:01.0", "pci0000:00/0000:00:02.0", "pci0000:80/0000:80:02.0"})
    tree.bridge(bridge);
  tree.pci("pci0000:00/0000:00:01.0/0000:03:00.0", {.device_class = "0x030200", .numa = 0});
  const std::string infiniband = "pci0000:00/0000:00:02.0/0000:04:00.0";
  tree.pci(infiniband, {.device_class = "0x020700", .vendor = "0x15b3", .numa = 0});
  tree.openfabrics("mlx5_0", infiniband, "506b:4b03:0000:0001", "506b:4b03:0000:0011");
  const std::string ethernet = "pci0000:80/0000:80:02.0/0000:82:00.0";
  tree.pci(ethernet, {.device_class = "0x020000", .vendor = "0x8086", .numa = 1});
  tree.interface("eth0", ethernet, "up", "100000");
}

/// As archives and file systems without links make it.
TEST(RecordedSysfs, MayHaveFilesWithTheirTargetsInThePlaceOfLinks) {
  const SysfsTree tree;
  fill(tree);
  const Machine before = probe_recorded_sysfs(tree.path());
  std::vector<std::filesystem::path> links;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.path()))
    if (entry.is_symlink()) links.push_back(entry.path());
  ASSERT_GE(links.size(), 8U);
  for (const std::filesystem::path& link : links) {
    const std::string target = std::filesystem::read_symlink(link).string();
    std::filesystem::remove(link);
    std::ofstream(link) << target;
  }
  const Machine after = probe_recorded_sysfs(tree.path());
  EXPECT_EQ(normal_form(after), normal_form(before));
  ASSERT_EQ(after.nics.size(), before.nics.size());
  for (std::size_t nic = 0; nic < after.nics.size(); ++nic) {
    EXPECT_EQ(after.nics[nic].name, before.nics[nic].name);
    EXPECT_EQ(after.nics[nic].pci, before.nics[nic].pci);
  }
}

TEST(RecordedSysfs, IsNotLeftByAFileThatNamesAPlaceOutside) {
  const SysfsTree tree;
  fill(tree);
  tree.write("class/net/evil", "../../../../../../../../etc");
  tree.write("class/net/loop", "../net/loop");
  EXPECT_EQ(probe::Sysfs(tree.path()).text("class/net/evil/hostname"), "");
  EXPECT_TRUE(probe::Sysfs(tree.path()).entries("class/net/evil").empty());
  for (const Nic& one : probe_recorded_sysfs(tree.path()).nics)
    EXPECT_TRUE(one.name != "evil" && one.name != "loop");
}

TEST(RecordedSysfs, WithoutAnythingInItWasNotRead) {
  const SysfsTree tree;
  std::filesystem::create_directories(tree.path() / "class/net");
  const Machine machine = probe_recorded_sysfs(tree.path());
  EXPECT_FALSE(machine.sources[0].read);
}

TEST(RecordedSysfs, WithoutInfinibandsPortsDoesNotKnowThem) {
  const SysfsTree tree;
  tree.two_sockets();
  tree.bridge("pci0000:00/0000:00:01.0");
  tree.pci("pci0000:00/0000:00:01.0/0000:01:00.0",
           {.device_class = "0x020700", .vendor = "0x15b3", .numa = 0});
  tree.bridge("pci0000:80/0000:80:02.0");
  tree.pci("pci0000:80/0000:80:02.0/0000:82:00.0",
           {.device_class = "0x020000", .vendor = "0x8086", .numa = 1});
  tree.interface("eth0", "pci0000:80/0000:80:02.0/0000:82:00.0", "up", "1000");
  const Machine machine = probe_recorded_sysfs(tree.path());
  EXPECT_EQ(usable_nics(machine), std::vector{0});
  EXPECT_THAT(machine.remarks,
              ElementsAre(HasSubstr("of nic@0000:01:00.0, an adapter of InfiniBand, no ports are known")));
}

}  // namespace
}  // namespace polyring
