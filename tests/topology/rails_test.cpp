// Which NICs are used where only some of them are to be.
#include "topology/rails.hpp"

#include "base/index.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_machine;
using testing::two_port_machine;
using testing::usage_sentence;

Machine host(std::string_view name) { return preset(name, 1).host(0); }

/// A NIC at this package, with a bus address.
void add_nic(Machine& machine, int package, const std::string& pci) {
  const int nic = static_cast<int>(machine.nics.size());
  machine.nics.push_back(machine.nics[0]);
  machine.nics.back().name = fmt::format("mlx5_{}", nic);
  machine.nics.back().pci = pci;
  machine.links.push_back({{DeviceKind::nic, nic},
                           {DeviceKind::package, package},
                           LinkKind::pcie,
                           gigabytes_per_second(16),
                           microseconds(1)});
}

TEST(Rails, AreTakenInTurnsFromThePackages) {
  const Machine machine = with_rails(host("dgx1-p100"), 2);
  EXPECT_TRUE(machine.nics[0].up() && machine.nics[2].up());
  EXPECT_FALSE(machine.nics[1].up() || machine.nics[3].up());
  EXPECT_NO_THROW(machine.validate());
  EXPECT_THAT(rail_nics(host("dgx1-p100"), 1), ElementsAre(0));
  EXPECT_THAT(rail_nics(host("dgx1-p100"), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(rail_nics(host("dgx-a100"), 2), ElementsAre(0, 4));
}

TEST(Rails, AreAsManyFromEachPackageAsItHas) {
  Machine machine = small_machine();
  for (int i = 0; i < 2; ++i) add_nic(machine, 0, "");
  add_nic(machine, 1, "");
  EXPECT_THAT(rail_nics(machine, 2), ElementsAre(0, 3));
  EXPECT_THAT(rail_nics(machine, 3), ElementsAre(0, 1, 3));
}

TEST(Rails, AreOfOtherAdaptersFirst) {
  Machine machine = two_port_machine();
  add_nic(machine, 0, "0000:5d:00.0");
  EXPECT_THAT(rail_nics(machine, 2), ElementsAre(0, 2));
  // By the GUID that an adapter's functions share.
  machine.nics[0].system_guid = machine.nics[2].system_guid = "0x1";
  EXPECT_THAT(rail_nics(machine, 2), ElementsAre(0, 1));
}

TEST(Rails, OfAPackageAreBehindUnlikeSwitches) {
  for (const char* name : {"dgx-a100", "dgx-h100"}) {
    EXPECT_THAT(rail_nics(host(name), 4), ElementsAre(0, 2, 4, 6)) << name;
    EXPECT_THAT(rail_nics(host(name), 6), ElementsAre(0, 1, 2, 4, 5, 6)) << name;
  }
}

/// One package with switch0 above switch1 and switch2, and switch3 beside it; a NIC at each of these
/// switches.
Machine switch_tree(const std::vector<int>& switches) {
  Machine machine = small_machine();
  const Link link = machine.links[2];
  machine.nics.resize(switches.size(), machine.nics[0]);
  machine.links.erase(machine.links.begin() + 2);
  machine.switches = {{"switch0", ""}, {"switch1", ""}, {"switch2", ""}, {"switch3", ""}};
  const auto join = [&](DeviceId from, DeviceId to) {
    machine.links.push_back({from, to, link.kind, link.bandwidth, link.latency});
  };
  for (const int inner : {1, 2}) join({DeviceKind::pci_switch, inner}, {DeviceKind::pci_switch, 0});
  for (const int outer : {0, 3}) join({DeviceKind::pci_switch, outer}, {DeviceKind::package, 0});
  for (int nic = 0; nic < static_cast<int>(switches.size()); ++nic) {
    const auto at = static_cast<std::size_t>(nic);
    machine.nics[at].name = fmt::format("mlx5_{}", nic);
    join({DeviceKind::nic, nic}, {DeviceKind::pci_switch, switches[at]});
  }
  return machine;
}

TEST(Rails, KnowSwitchesBehindSwitches) {
  const Machine machine = switch_tree({1, 1, 2, 2, 3, 3});
  EXPECT_THAT(rail_nics(machine, 2), ElementsAre(0, 4));
  EXPECT_THAT(rail_nics(machine, 3), ElementsAre(0, 2, 4));
  EXPECT_THAT(rail_nics(machine, 4), ElementsAre(0, 2, 4, 5));
}

TEST(Rails, AreTheFastestOfAPackage) {
  Machine machine = switch_tree({1, 1, 3});
  for (const int slow : {0, 2}) machine.nics[index(slow)].ports[0].bandwidth = gigabytes_per_second(10);
  EXPECT_THAT(rail_nics(machine, 1), ElementsAre(1));
  EXPECT_THAT(rail_nics(machine, 2), ElementsAre(1, 2));
}

TEST(Rails, OfNoKnownPackageComeLast) {
  Machine machine = small_machine();
  add_nic(machine, 0, "");
  add_nic(machine, 0, "");
  machine.nics[0].package_known = false;
  EXPECT_THAT(rail_nics(machine, 2), ElementsAre(1, 2));
  EXPECT_EQ(rails_text(machine, 3),
            "3 of 3 NICs are used: mlx5_0 (processor ?), mlx5_1 (processor 0), mlx5_2 (processor 0)");
}

TEST(Rails, AreNamed) {
  EXPECT_EQ(rails_text(host("dgx1-v100"), 2),
            "2 of 4 NICs are used: mlx5_0 (processor 0), mlx5_2 (processor 1)");
  EXPECT_EQ(rails_text(host("ac922"), 1), "1 of 2 NICs is used: mlx5_0 (processors 0 and 1)");
}

TEST(Rails, AreThoseThatRoutesUse) {
  Machine machine = small_machine();
  add_nic(machine, 1, "");
  machine.nics[0].name = "eno1";  // Ethernet beside InfiniBand
  machine.nics[0].kind = NicKind::ethernet;
  EXPECT_THAT(rail_nics(machine, 1), ElementsAre(1));
  EXPECT_FALSE(with_rails(machine, 1).nics[0].up());
  EXPECT_THAT(usage_sentence([&] { with_rails(machine, 2); }), HasSubstr("has 1 NIC up that leads to"));
}

TEST(Rails, SkipNicsThatAreDown) {
  Machine machine = host("minsky");
  machine.nics[0].ports[0].up = false;
  EXPECT_TRUE(with_rails(machine, 1).nics[1].up());
  EXPECT_THAT(usage_sentence([&] { with_rails(machine, 2); }), HasSubstr("from 1 to 1"));
}

TEST(Rails, RefuseMoreThanThereAre) {
  EXPECT_THAT(usage_sentence([] { with_rails(host("summit"), 9); }), HasSubstr("9 rails were asked for"));
  for (const int rails : {-1, 0, 3}) {
    EXPECT_THAT(usage_sentence([&] { with_rails(host("minsky"), rails); }),
                AllOf(HasSubstr(std::to_string(rails) + " rails"), HasSubstr("from 1 to 2")));
  }
  Machine machine = host("minsky");
  for (Nic& nic : machine.nics) nic.ports.clear();
  EXPECT_THAT(usage_sentence([&] { with_rails(machine, 1); }),
              AllOf(HasSubstr("1 rail was asked for, but no NIC of machine 'minsky' is known to be up; "),
                    HasSubstr("--assume nic=400Gb/s, or leave the rails out")));
  for (Nic& nic : machine.nics) nic.ports = {{1, false, {}}};
  EXPECT_THAT(usage_sentence([&] { with_rails(machine, 2); }),
              HasSubstr("2 rails were asked for, but no NIC of machine 'minsky' is known to be up; leave"));
}

}  // namespace
}  // namespace polyring
