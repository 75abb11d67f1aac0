// The cuts of hosts against trying all of them out, and the words for them.
#include "topology/min_cut.hpp"

#include <cmath>
#include <limits>
#include <set>

#include "tests/topology/support.hpp"
#include "topology/link_names.hpp"
#include "topology/presets.hpp"
#include "topology/rank_groups.hpp"
#include "topology/rank_nics.hpp"

namespace polyring {
namespace {

using testing::small_machine;
using testing::two_port_machine;

/// The small machine with its NIC on both packages, and a bus between these that is narrower than any link.
Machine nic_of_two_packages() {
  Machine machine = small_machine();
  machine.name = "NIC of two packages";
  machine.links.push_back(machine.links[2]);
  machine.links.back().to.index = 1;
  machine.links[0].bandwidth = gigabytes_per_second(100);
  machine.links[2].bandwidth = machine.links.back().bandwidth = gigabytes_per_second(16);
  machine.links[3].bandwidth = gigabytes_per_second(10);
  return machine;
}

std::vector<bool> mask(const Machine& machine, unsigned ranks) {
  std::vector<bool> inside;
  for (int rank = 0; rank < machine.ranks(); ++rank) inside.push_back(((ranks >> rank) & 1u) != 0);
  return inside;
}

/// The least over all sides that packages, switches and usable NICs can be on.
class EverySide {
 public:
  EverySide(const Machine& machine, bool several_hosts) : machine_(machine) {
    const auto add = [&](DeviceKind kind, std::size_t count) {
      for (int i = 0; i < static_cast<int>(count); ++i) free_.push_back({kind, i});
    };
    add(DeviceKind::package, machine.packages.size());
    add(DeviceKind::pci_switch, machine.switches.size());
    add(DeviceKind::nvswitch, static_cast<std::size_t>(machine.nvswitches));
    if (several_hosts) nics_ = usable_nics(machine);
    for (const int nic : nics_) free_.push_back({DeviceKind::nic, nic});
  }

  double least(unsigned ranks) const {
    double least = std::numeric_limits<double>::infinity();
    for (unsigned sides = 0; sides < (1u << free_.size()); ++sides)
      least = std::min(least, cut(ranks, sides));
    return least;
  }

 private:
  bool inside(DeviceId id, unsigned ranks, unsigned sides) const {
    if (id.kind == DeviceKind::gpu) return ((ranks >> id.index) & 1u) != 0;
    const auto at = std::ranges::find(free_, id);
    return at != free_.end() && ((sides >> (at - free_.begin())) & 1u) != 0;
  }

  double cut(unsigned ranks, unsigned sides) const {
    double sum = 0;
    std::set<std::pair<std::string, DeviceId>> shared;  // the slots whose link is cut
    for (const Link& link : machine_.links) {
      const DeviceId nic = link.from.kind == DeviceKind::nic ? link.from : link.to;
      const DeviceId other = nic == link.from ? link.to : link.from;
      const bool a = inside(other, ranks, sides);
      const bool b = inside(nic, ranks, sides);
      if (nic.kind != DeviceKind::nic) {
        sum += a != b ? link.bandwidth.value : 0;
      } else if (std::ranges::find(nics_, nic.index) != nics_.end()) {
        const std::string& pci = machine_.nics[static_cast<std::size_t>(nic.index)].pci;
        const bool again =
            a && !b && !pci.empty() && !shared.insert({pci.substr(0, pci.size() - 1), other}).second;
        sum += a && !b && !again ? link.bandwidth.value : 0;
      }
    }
    for (const int nic : nics_) {
      if (inside({DeviceKind::nic, nic}, ranks, sides))
        sum += machine_.nics[static_cast<std::size_t>(nic)].bandwidth().value;
    }
    return sum;
  }

  const Machine& machine_;
  std::vector<DeviceId> free_;
  std::vector<int> nics_;
};

TEST(MinCut, IsTheLeastOfAllCuts) {
  std::vector<Machine> machines{small_machine(), two_port_machine(), nic_of_two_packages()};
  machines.push_back(two_port_machine());
  // The same adapter on both packages, as in an AC922, with a GPU more on one.
  Machine& multi_host = machines.back();
  multi_host.name = "multi-host";
  for (const int link : {2, 3}) {
    multi_host.links.push_back(multi_host.links[static_cast<std::size_t>(link)]);
    multi_host.links.back().to.index = 1;
  }
  for (Nic& nic : multi_host.nics) nic.ports[0].bandwidth = gigabytes_per_second(40);
  for (const char* name : {"minsky", "ac922", "summit", "ethernet", "dgx1-p100"}) {
    machines.push_back(preset(name, 1).host(0));
  }
  for (const Machine& machine : machines) {
    const unsigned all = (1u << machine.ranks()) - 1;
    for (const bool several_hosts : {false, true}) {
      const EverySide every(machine, several_hosts);
      for (unsigned ranks = 1; ranks < all + (several_hosts ? 1 : 0); ++ranks) {
        EXPECT_NEAR(min_cut(machine, mask(machine, ranks), several_hosts).bandwidth.value, every.least(ranks),
                    10)
            << machine.name << ", ranks " << ranks << (several_hosts ? ", several hosts" : "");
      }
    }
  }
}

TEST(MinCut, NamesWhatItCuts) {
  const Machine machine = preset("minsky", 1).host(0);
  const auto words = [&](unsigned ranks, bool several_hosts, bool ends) {
    const MinCut cut = min_cut(machine, mask(machine, ranks), several_hosts);
    return names_of(machine, cut.links, cut.nics, ends);
  };
  EXPECT_EQ(words(0b0011, false, true), "X-bus package0 - package1");
  EXPECT_EQ(words(0b0001, false, true), "4 x NVLink of 20.0 GB/s");
  EXPECT_EQ(words(0b1111, true, false), "2 x EDR InfiniBand");
  EXPECT_EQ(words(0b0011, true, true), "X-bus package0 - package1 of 38.4 GB/s and 1 x EDR InfiniBand");
}

TEST(MinCut, NamesARateOnlyWhereThePortRunsAtIt) {
  Machine machine = preset("minsky", 1).host(0);
  for (Nic& nic : machine.nics) nic.ports[0].bandwidth = gigabytes_per_second(6.79);
  const MinCut cut = min_cut(machine, mask(machine, 0b1111), true);
  EXPECT_EQ(names_of(machine, cut.links, cut.nics, false), "2 x InfiniBand of 6.79 GB/s");
}

TEST(MinCut, IsTheNarrowLinkOfANic) {
  Machine machine = small_machine();  // the NIC of 12 GB/s is on a PCIe link of 8
  MinCut cut = min_cut(machine, {true, true}, true);
  EXPECT_DOUBLE_EQ(cut.bandwidth.value, 8e9);
  EXPECT_EQ(names_of(machine, cut.links, cut.nics, true), "PCIe mlx5_0 - package0");
  machine.links[2].bandwidth = {};
  cut = min_cut(machine, {true, true}, true);
  EXPECT_DOUBLE_EQ(cut.bandwidth.value, 12e9);
  EXPECT_EQ(names_of(machine, cut.links, cut.nics, true), "1 x InfiniBand of 12.0 GB/s");
}

/// gpu0's package and the NIC are on one side: what joins the NIC to the other package is no part of the cut,
/// since nothing flows from a NIC into a host.
TEST(MinCut, OfANicUnderTwoPackagesIsItsPort) {
  const Machine machine = nic_of_two_packages();
  const MinCut cut = min_cut(machine, {true, false}, true);
  EXPECT_DOUBLE_EQ(cut.bandwidth.value, 22e9) << "the bus and the port";
  EXPECT_EQ(cut.links, std::vector{3});
  EXPECT_EQ(cut.nics, std::vector{0});
}

TEST(MinCut, CountsTheLinkOfADevicesFunctionsOnce) {
  Machine machine = two_port_machine();
  const MinCut cut = min_cut(machine, {true, true}, true);
  EXPECT_DOUBLE_EQ(cut.bandwidth.value, 16e9) << "not 24, of the two ports";
  EXPECT_EQ(names_of(machine, cut.links, cut.nics, true), "PCIe mlx5_0 + mlx5_1 - package0");
  machine.nics[1].pci = "0000:4e:00.0";
  EXPECT_DOUBLE_EQ(min_cut(machine, {true, true}, true).bandwidth.value, 24e9) << "two adapters";
  machine.nics[1].pci = machine.nics[0].pci = "";
  EXPECT_DOUBLE_EQ(min_cut(machine, {true, true}, true).bandwidth.value, 24e9) << "nobody knows";
}

TEST(MinCut, OfAPortThatIsDownIsThatOfTheOther) {
  Machine machine = two_port_machine();
  machine.nics[0].ports[0].up = false;
  EXPECT_DOUBLE_EQ(min_cut(machine, {true, true}, true).bandwidth.value, 12e9);
  machine.nics[1].ports[0].bandwidth = gigabytes_per_second(25);
  EXPECT_DOUBLE_EQ(min_cut(machine, {true, true}, true).bandwidth.value, 16e9);
}

TEST(MinCut, OfUnknownLinksIsUnknown) {
  Machine machine = small_machine();
  machine.links.back().bandwidth = {};  // the socket bus: the GPUs' own links remain
  EXPECT_DOUBLE_EQ(min_cut(machine, {true, false}, false).bandwidth.value, 16e9);
  for (Link& link : machine.links) link.bandwidth = {};
  const MinCut inside = min_cut(machine, {true, false}, false);
  EXPECT_TRUE(inside.unknown);
  EXPECT_EQ(inside.links, (std::vector{1, 3, 0})) << "the way, backwards: gpu1, the bus, gpu0";
  EXPECT_TRUE(inside.nics.empty());
  machine.nics.front().ports.front().bandwidth = {};
  const MinCut host = min_cut(machine, {true, true}, true);
  EXPECT_TRUE(host.unknown);
  EXPECT_EQ(host.nics, std::vector{0});
}

TEST(MinCut, TellsNothingThatJoinsFromWhatIsUnknown) {
  Machine machine = small_machine();
  machine.nics.front().ports.front().up = false;
  const MinCut cut = min_cut(machine, {true, true}, true);
  EXPECT_FALSE(cut.unknown);
  EXPECT_FALSE(cut.bandwidth.known());
  EXPECT_TRUE(cut.links.empty());
}

TEST(MinCut, GoesThroughNoNic) {
  // Summit's NICs hang on both packages: within the host they carry nothing from one to the other.
  const Machine machine = preset("summit", 1).host(0);
  EXPECT_DOUBLE_EQ(min_cut(machine, mask(machine, 0b000111), false).bandwidth.gigabytes_per_second(), 64);
}

std::vector<std::string> names(const std::vector<RankGroup>& groups) {
  std::vector<std::string> names;
  for (const RankGroup& group : groups) names.push_back(group.name);
  return names;
}

TEST(RankGroups, FollowTheHardware) {
  using Names = std::vector<std::string>;
  const Machine minsky = preset("minsky", 1).host(0);
  EXPECT_EQ(names(ranks_by_package(minsky)), (Names{"2 GPUs of package0", "2 GPUs of package1"}));
  EXPECT_EQ(names(ranks_by_upper_switch(minsky)), Names{"4 GPUs"});
  EXPECT_EQ(names(ranks_by_island(minsky)),
            (Names{"2 GPUs joined to each other (gpu0, gpu1)", "2 GPUs joined to each other (gpu2, gpu3)"}));
  const Machine dgx = preset("dgx-a100", 1).host(0);
  EXPECT_EQ(ranks_by_lower_switch(dgx).size(), 4u);
  EXPECT_EQ(ranks_by_lower_switch(dgx)[1].ranks, (std::vector{2, 3}));
  EXPECT_EQ(ranks_by_island(dgx).size(), 1u) << "the NVSwitches join all";
  EXPECT_EQ(names(ranks_by_island(small_machine())), (Names{"gpu0", "gpu1"}));
}

TEST(RankGroups, KnowWhetherNvlinksJoinEachPair) {
  for (const char* joined : {"dgx-a100", "dgx-h100"})
    EXPECT_TRUE(gpu_fabric_joins_each_pair(preset(joined, 1).host(0))) << joined;
  for (const char* parted : {"dgx1-v100", "minsky", "ethernet"})
    EXPECT_FALSE(gpu_fabric_joins_each_pair(preset(parted, 1).host(0))) << parted;
}

TEST(RankGroups, TellUpperSwitchesFromLower) {
  // gpu0 and gpu2 under switch1 and gpu3 under switch2, both under switch0; gpu1 at the other package.
  Machine machine = small_machine();
  const auto pcie = [&](DeviceId from, DeviceId to) {
    machine.links.push_back({from, to, LinkKind::pcie, gigabytes_per_second(16), {}});
  };
  const auto pci_switch = [](int i) { return DeviceId{DeviceKind::pci_switch, i}; };
  machine.switches = {{"switch0", ""}, {"switch1", ""}, {"switch2", ""}};
  machine.gpus.push_back({"gpu2", "", "", 0, 0, {}, {}});
  machine.gpus.push_back({"gpu3", "", "", 0, 0, {}, {}});
  machine.links[0].to = pci_switch(1);
  pcie({DeviceKind::gpu, 2}, pci_switch(1));
  pcie({DeviceKind::gpu, 3}, pci_switch(2));
  pcie(pci_switch(1), pci_switch(0));
  pcie(pci_switch(2), pci_switch(0));
  pcie(pci_switch(0), {DeviceKind::package, 0});
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(ranks_by_upper_switch(machine)), (Names{"3 GPUs behind switch0", "gpu1"}));
  EXPECT_EQ(names(ranks_by_lower_switch(machine)), (Names{"2 GPUs behind switch1", "gpu3", "gpu1"}));
}

TEST(LinkNames, CountNvlinksByTheGpusGeneration) {
  Machine machine = preset("dgx-h100", 1).host(0);
  const auto nvlink = std::ranges::find(machine.links, LinkKind::nvlink, &Link::kind);
  EXPECT_EQ(nvlinks_in(machine, *nvlink), 18);
  nvlink->bandwidth = gigabytes_per_second(430);
  EXPECT_EQ(nvlinks_in(machine, *nvlink), 0) << "no multiple of 25 GB/s";
  std::string& model = machine.gpus[static_cast<std::size_t>(nvlink->from.index)].model;
  model = "a new one";
  nvlink->bandwidth = gigabytes_per_second(450);
  EXPECT_EQ(nvlinks_in(machine, *nvlink), 0);
  model = "device 10de:2330, sm 90";
  EXPECT_EQ(nvlinks_in(machine, *nvlink), 18) << "as a file of NCCL names it";
}

}  // namespace
}  // namespace polyring
