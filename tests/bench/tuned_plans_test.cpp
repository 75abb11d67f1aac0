#include "bench/plans/tuned_plans.hpp"

#include <gtest/gtest.h>

namespace polyring {
namespace {

Nic nic(NicKind kind, bool up, Bandwidth rate) {
  Nic nic;
  nic.kind = kind;
  nic.ports = {{1, up, rate}};
  return nic;
}

TEST(NetworkText, TellsNetworksApartByPortsThatAreUpAndBySettings) {
  const Bandwidth fast{12.5e9};
  const Bandwidth slow{125e6};
  Machine machine;
  EXPECT_EQ(network_text(machine, {}), "");
  machine.nics = {nic(NicKind::infiniband, true, fast), nic(NicKind::ethernet, true, slow),
                  nic(NicKind::infiniband, true, fast), nic(NicKind::infiniband, false, fast),
                  nic(NicKind::ethernet, true, {})};
  const std::string ports = "1 x ethernet of " + to_text(slow) +
                            ", 1 x ethernet of an unknown rate, 2 x infiniband of " + to_text(fast);
  EXPECT_EQ(network_text(machine, {}), ports);
  EXPECT_EQ(network_text(
                machine,
                {{"UCX_NET_DEVICES", "mlx5_0:1"}, {"OMPI_MCA_btl", "self,tcp"}, {"UCX_LOG_LEVEL", "info"}}),
            ports + ", OMPI_MCA_btl=self,tcp, UCX_NET_DEVICES=mlx5_0:1");
  const std::string before = network_text(machine, {});
  machine.nics[1].ports.front().bandwidth = fast;
  EXPECT_NE(network_text(machine, {}), before) << "another rate is another network";
}

}  // namespace
}  // namespace polyring
