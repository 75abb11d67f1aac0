#include "topology/socket_buses.hpp"

#include "tests/topology/support.hpp"

namespace polyring {
namespace {

using ::testing::HasSubstr;
using testing::small_machine;

/// The small machine as a probe leaves it.
Machine probed(std::string model) {
  Machine machine = small_machine();
  machine.model = std::move(model);
  machine.links.back().bandwidth = {};
  return machine;
}

TEST(SocketBuses, AreKnownByTheMachinesType) {
  for (const auto& [model, gigabytes] : {std::pair{"PowerNV 8335-GTB", 38.4},
                                         {"PowerNV 8335-GTW", 64.0},
                                         {"PowerNV 8335-GTX", 64.0},
                                         {"PowerNV 8335-GTG", 64.0}}) {
    Machine machine = probed(model);
    add_published_socket_bus(machine);
    EXPECT_DOUBLE_EQ(machine.links.back().bandwidth.gigabytes_per_second(), gigabytes) << model;
    ASSERT_EQ(machine.citations.size(), 1u);
    EXPECT_THAT(machine.citations[0].fact, HasSubstr("published, not measured"));
  }
}

TEST(SocketBuses, OfOtherMachinesStayUnknown) {
  // The GCA has POWER8 processors without NVLink; the others tell nothing of their links.
  for (const char* model : {"PowerNV 8335-GCA", "PowerEdge XE8640", "NVIDIA DGXA100", ""}) {
    Machine machine = probed(model);
    add_published_socket_bus(machine);
    EXPECT_FALSE(machine.links.back().bandwidth.known()) << model;
    EXPECT_TRUE(machine.citations.empty());
  }
}

TEST(SocketBuses, ThatAreKnownOrOfMoreSocketsStayAsTheyAre) {
  Machine known = probed("PowerNV 8335-GTB");
  known.links.back().bandwidth = gigabytes_per_second(20);
  add_published_socket_bus(known);
  EXPECT_DOUBLE_EQ(known.links.back().bandwidth.gigabytes_per_second(), 20);
  EXPECT_TRUE(known.citations.empty());
  Machine three = probed("PowerNV 8335-GTB");
  three.packages.push_back(three.packages.back());
  add_published_socket_bus(three);
  EXPECT_FALSE(three.links.back().bandwidth.known());
}

}  // namespace
}  // namespace polyring
