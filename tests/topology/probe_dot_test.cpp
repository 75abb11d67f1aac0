// Clusters as graphs for Graphviz; tests/bench/probe_picture_test.py has Graphviz read them.
#include "topology/inventory/formats/probe_dot.hpp"

#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using testing::expect_golden;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_machine;

std::string dot_of(const Machine& machine, int hosts = 1) { return probe_dot(cluster_of(machine, hosts)); }

TEST(ProbeDot, IsAsTheGoldenFiles) {
  for (const char* name : {"minsky", "dgx-h100"})
    expect_golden(fmt::format("probe/{}.dot", name), probe_dot(preset(name, 1)));
}

TEST(ProbeDot, GroupsDevicesByTheirPackage) {
  const std::string dot = dot_of(small_machine());
  const auto first = dot.find("subgraph cluster_h0_package0");
  EXPECT_GT(dot.find("h0_gpu0 ["), first);
  EXPECT_LT(dot.find("h0_gpu1 ["), first);
}

TEST(ProbeDot, PutsWhatIsNearToSeveralPackagesBesideThem) {
  const std::string dot = probe_dot(preset("ac922", 1));
  EXPECT_THAT(dot, AllOf(HasSubstr("\n    h0_nic0 [label=\"mlx5_0"), HasSubstr("\n      h0_gpu0 [")));
}

TEST(ProbeDot, EscapesNames) {
  Machine machine = small_machine();
  machine.name = "a \"b\" \\N &lt;\x01 caf\xe9";
  EXPECT_THAT(dot_of(machine), HasSubstr("label=\"a \\\"b\\\" \\\\N &amp;lt;  caf\xEF\xBF\xBD\""));
}

TEST(ProbeDot, LeavesOutWhatIsUnknownOfAPackage) {
  Machine machine = small_machine();
  EXPECT_THAT(dot_of(machine), HasSubstr("h0_package0 [label=\"package0\\n4 cores\"]"));
  machine.packages[0].cores = 0;
  EXPECT_THAT(dot_of(machine), HasSubstr("h0_package0 [label=\"package0\"]"));
}

TEST(ProbeDot, MarksWhatIsSharedOrOfUnknownPlace) {
  Machine machine = testing::two_port_machine();
  const std::string placed = probe_dot(cluster_of(machine, 1));
  EXPECT_THAT(placed, HasSubstr("pcie 16.0 GB/s, shared"));
  EXPECT_THAT(placed, Not(HasSubstr("package ?")));
  machine.gpus[0].package_known = false;
  EXPECT_THAT(probe_dot(cluster_of(machine, 1)), HasSubstr("package ?"));
}

TEST(ProbeDot, WidensEdgesWithTheirBandwidth) {
  Machine machine = small_machine();
  machine.links[0].bandwidth = {};
  const std::string dot = dot_of(machine);
  EXPECT_THAT(dot, HasSubstr("h0_package0 -- h0_gpu0 [label=\"pcie ?\", color=\"#3A4652\", penwidth=1, "
                             "style=dotted]"));
  EXPECT_THAT(dot, HasSubstr("h0_package1 -- h0_gpu1 [label=\"pcie 16.0 GB/s\", color=\"#3A4652\", "
                             "penwidth=1.83]"));
}

TEST(ProbeDot, MarksPortsThatAreDown) {
  Machine machine = small_machine();
  machine.nics[0].ports.push_back({2, false, gigabytes_per_second(12)});
  EXPECT_THAT(dot_of(machine, 2),
              AllOf(HasSubstr("h0_nic0 -- h0_nic0_port1 [color=red, fontcolor=red, style=dashed]"),
                    HasSubstr("label=\"port 2\\nDOWN\""), HasSubstr("h0_nic0_port0 -- leaf"),
                    Not(HasSubstr("h0_nic0_port1 -- leaf"))));
}

TEST(ProbeDot, DrawsAlikeHostsOnceAndTheirFabric) {
  Cluster cluster = preset("minsky", 14);
  cluster.groups.push_back({small_machine(), 1});
  cluster.fabric.hosts_per_leaf = 5;
  cluster.fabric.leaf_uplink = gigabytes_per_second(36);
  EXPECT_THAT(probe_dot(cluster),
              AllOf(HasSubstr("minsky × 14"), HasSubstr("subgraph cluster_h1 {\n    label=\"small\"\n"),
                    HasSubstr("leaf -- spine [label=\"36.0 GB/s\", penwidth=2.50]"),
                    HasSubstr("h1_nic0_port0 -- leaf")));
  cluster.fabric.pods = {{10, gigabytes_per_second(9)}};
  EXPECT_THAT(probe_dot(cluster), AllOf(HasSubstr("leaf -- pod10 [label=\"36.0 GB/s\""),
                                        HasSubstr("pod10 -- spine [label=\"9.00 GB/s\"")));
  // Of the fabric of one host nothing is known.
  EXPECT_THAT(dot_of(small_machine()), Not(HasSubstr("leaf")));
}

}  // namespace
}  // namespace polyring
