// Which address other hosts are told, and whether they are reached by RDMA.
#include "collectives/runtime/net/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "collectives/runtime/net/rdma.hpp"
#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;

const std::vector<NetworkInterface> kInterfaces{
    {"lo", "127.0.0.1", true}, {"eth0", "10.77.1.1", false}, {"ib0", "10.78.1.1", false}};

TEST(Address, OneHostTalksToItself) {
  EXPECT_EQ(choose_address(kInterfaces, "", "eth0", false), "127.0.0.1");
}

TEST(Address, SeveralHostsMeetOnTheDefaultRouteOrTheFirstInterface) {
  EXPECT_EQ(choose_address(kInterfaces, "", "ib0", true), "10.78.1.1");
  EXPECT_EQ(choose_address(kInterfaces, "", "", true), "10.77.1.1");
  EXPECT_EQ(choose_address(kInterfaces, "", "gone0", true), "10.77.1.1");
}

TEST(Address, TheWantedOneGoesFirst) {
  EXPECT_EQ(choose_address(kInterfaces, "ib0", "eth0", true), "10.78.1.1");
  EXPECT_EQ(choose_address(kInterfaces, "ib0", "", false), "10.78.1.1");
  EXPECT_EQ(choose_address(kInterfaces, "lo", "", true), "127.0.0.1");
}

TEST(Address, WhatIsNotThereIsSaid) {
  const auto expect_failure = [](const std::vector<NetworkInterface>& interfaces, const std::string& wanted,
                                 bool several_hosts, const std::string& naming) {
    try {
      choose_address(interfaces, wanted, "", several_hosts);
      ADD_FAILURE() << "chose an address where there is none";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_available);
      EXPECT_THAT(error.what(), HasSubstr(naming));
    }
  };
  expect_failure(kInterfaces, "eth1", true, "no interface eth1");
  expect_failure(kInterfaces, "eth1", true, "eth0 (10.77.1.1)");
  expect_failure({kInterfaces[0]}, "", true, "other hosts");
  expect_failure({kInterfaces[1]}, "", false, "reaches itself");
  expect_failure({}, "", false, "none");
}

TEST(Address, ThisHostHasALoopback) {
  bool found = false;
  for (const NetworkInterface& interface : network_interfaces()) {
    EXPECT_FALSE(interface.name.empty());
    EXPECT_EQ(interface.loopback, interface.address.starts_with("127."));
    found = found || interface.address == "127.0.0.1";
  }
  if (!found) GTEST_SKIP() << "no loopback interface is up here";
}

TEST(Rdma, IsThereWithADevice) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(has_rdma_device(folder.path()));
  std::filesystem::create_directories(folder.path() / "class/infiniband");
  EXPECT_FALSE(has_rdma_device(folder.path())) << "the driver alone is loaded";
  folder.write("class/infiniband/mlx5_0/node_type", "1: CA\n");
  EXPECT_TRUE(has_rdma_device(folder.path()));
}

}  // namespace
}  // namespace polyring
