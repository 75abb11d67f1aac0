// Devices that lag behind others like them in one host.
#include "topology/inventory/probe/odd_ones.hpp"

#include "tests/topology/support.hpp"

namespace polyring::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr DeviceId gpu(int i) { return {DeviceKind::gpu, i}; }
constexpr DeviceId nic(int i) { return {DeviceKind::nic, i}; }

/// Eight GPUs and eight NICs, a pair below each switch.
Machine server() {
  Machine machine;
  machine.name = "server";
  machine.packages = {{"package0", {}, 64, {}, {}, {0}}};
  for (int i = 0; i < 8; ++i) {
    machine.switches.push_back({fmt::format("switch{}", i), ""});
    machine.gpus.push_back({fmt::format("gpu{}", i), "H100", "", 0, 0, {}, {}});
    machine.nics.push_back({fmt::format("mlx5_{}", i),
                            "MT4129",
                            "",
                            0,
                            0,
                            NicKind::infiniband,
                            {{1, true, gigabytes_per_second(48.5)}}});
    const DeviceId parent{DeviceKind::pci_switch, i};
    for (const DeviceId device : {gpu(i), nic(i)})
      machine.links.push_back({device, parent, LinkKind::pcie, gigabytes_per_second(63), {}});
    machine.links.push_back({parent, {DeviceKind::package, 0}, LinkKind::pcie, gigabytes_per_second(63), {}});
  }
  return machine;
}

std::vector<std::string> remarks(const Machine& machine) {
  std::vector<std::string> found;
  for (const OddOne& odd : odd_ones(machine)) found.push_back(odd.remark);
  return found;
}

TEST(OddOnes, AreNoneWhereAllAreAlike) { EXPECT_THAT(remarks(server()), IsEmpty()); }

TEST(OddOnes, AreGpusOnSlowPcie) {
  Machine machine = server();
  machine.links[3 * 5].bandwidth = gigabytes_per_second(31.5);
  EXPECT_THAT(
      remarks(machine),
      ElementsAre(HasSubstr("gpu5's PCIe link carries 31.5 GB/s, those of 7 GPUs like it 63.0 GB/s")));
  machine.gpus[5].model = "L4";
  EXPECT_THAT(remarks(machine), IsEmpty()) << "another model";
}

TEST(OddOnes, ArePortsOfLowerRate) {
  Machine machine = server();
  machine.nics[2].ports[0].bandwidth = gigabytes_per_second(24.3);
  EXPECT_THAT(remarks(machine), ElementsAre(HasSubstr("mlx5_2 carries 24.3 GB/s, 7 NICs like it 48.5 GB/s")));
  for (const std::size_t nic : {0U, 1U, 3U})
    machine.nics[nic].ports[0].bandwidth = gigabytes_per_second(24.3);
  EXPECT_THAT(remarks(machine), IsEmpty()) << "half of them are built so";
}

TEST(OddOnes, DoNotCountManagementPorts) {
  Machine machine = server();
  for (Nic& one : machine.nics) one.kind = NicKind::ethernet;
  machine.nics[2].ports[0].bandwidth = gigabytes_per_second(0.125);
  EXPECT_THAT(remarks(machine), IsEmpty());
}

TEST(OddOnes, AreGpusWithoutTheirNic) {
  Machine machine = server();
  machine.nics.pop_back();
  std::erase_if(machine.links, [](const Link& link) { return link.from == nic(7); });
  EXPECT_THAT(remarks(machine),
              ElementsAre(HasSubstr("gpu7 has no NIC below its PCIe switches, and 7 of 8 GPUs have one")));
  machine.nics.resize(4);
  std::erase_if(machine.links,
                [](const Link& link) { return link.from.kind == DeviceKind::nic && link.from.index >= 4; });
  EXPECT_THAT(remarks(machine), IsEmpty()) << "half of them are built so";
}

TEST(OddOnes, AreNoneOfTwo) {
  Machine machine = server();
  machine.gpus.resize(2);
  machine.nics.resize(2);
  std::erase_if(machine.links, [](const Link& link) {
    return link.from.kind != DeviceKind::pci_switch && link.from.index >= 2;
  });
  machine.links[0].bandwidth = gigabytes_per_second(8);
  EXPECT_THAT(remarks(machine), IsEmpty());
}

}  // namespace
}  // namespace polyring::probe
