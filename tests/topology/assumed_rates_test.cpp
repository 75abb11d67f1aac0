// Rates that are assumed where no source tells them, and what stays as it is.
#include "topology/assumed_rates.hpp"

#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using testing::small_machine;

constexpr Bandwidth kRate = gigabytes_per_second(50);

TEST(AssumedRates, FillWhatIsUnknownAlone) {
  Machine machine = small_machine();
  machine.links[1].bandwidth = {};
  const FilledRates pcie = fill_unknown(machine, RateOf::pcie_link, kRate);
  EXPECT_EQ(pcie.filled, 1);
  EXPECT_EQ(pcie.known, 2);
  EXPECT_EQ(machine.links[1].bandwidth, kRate);
  EXPECT_TRUE(machine.links[1].assumed);
  EXPECT_FALSE(machine.links[0].assumed);
  EXPECT_EQ(machine.links[0].bandwidth, gigabytes_per_second(16));
  EXPECT_TRUE(has_assumed_rates(machine));
  EXPECT_EQ(fill_unknown(machine, RateOf::socket_bus, kRate).filled, 0);
  EXPECT_EQ(fill_unknown(machine, RateOf::nvlink, kRate).known, 0);
}

TEST(AssumedRates, GiveEachPortThatMayBeUpItsRate) {
  Machine machine = small_machine();
  machine.nics[0].ports = {{1, true, {}}, {2, false, {}}};
  EXPECT_EQ(fill_unknown(machine, RateOf::nic_port, kRate).filled, 1);
  EXPECT_EQ(machine.nics[0].bandwidth(), kRate);
  EXPECT_FALSE(machine.nics[0].ports[1].assumed);
  EXPECT_TRUE(has_assumed_rates(machine));
  // As in a matrix of nvidia-smi, which has no ports.
  machine.nics[0].ports.clear();
  EXPECT_EQ(fill_unknown(machine, RateOf::nic_port, kRate).filled, 1);
  EXPECT_TRUE(machine.nics[0].up());
  EXPECT_EQ(fill_unknown(machine, RateOf::nic_port, kRate).known, 1);
}

TEST(AssumedRates, CountTheNvlinksThatAreBonded) {
  Machine machine = small_machine();
  Link link{{DeviceKind::gpu, 0}, {DeviceKind::gpu, 1}, LinkKind::nvlink, {}, {}, 2};
  machine.links.push_back(link);
  EXPECT_EQ(fill_unknown(machine, RateOf::nvlink, kRate).filled, 2);
  EXPECT_EQ(machine.links.back().bandwidth, 2 * kRate);
  link.count = 0;
  machine.links.back() = link;
  const FilledRates none = fill_unknown(machine, RateOf::nvlink, kRate);
  EXPECT_EQ(none.filled, 0);
  EXPECT_EQ(none.uncounted, "NVLink gpu0 - gpu1");
  EXPECT_FALSE(machine.links.back().bandwidth.known());
}

}  // namespace
}  // namespace polyring
