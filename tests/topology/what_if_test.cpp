// Machines with other NICs, fewer GPUs, or without a device or link; fabrics that are oversubscribed.
#include "topology/what_if.hpp"

#include "base/index.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/nvidia_smi.hpp"
#include "topology/link_names.hpp"
#include "topology/presets.hpp"
#include "topology/rank_nics.hpp"
#include "topology/route.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::small_machine;
using testing::usage_sentence;

Machine host(std::string_view name) { return preset(name, 1).host(0); }

presets::NicPart part(const std::string& rate, NicProtocol protocol = NicProtocol::infiniband) {
  return presets::nic_by_rate(protocol, rate, "nics", "test");
}

TEST(WithNics, KeepsFewerOnAllSockets) {
  const Machine machine = with_nics(host("dgx-h100"), 2, std::nullopt);
  ASSERT_EQ(machine.nics.size(), 2u);
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  EXPECT_EQ(machine.nics[1].name, "mlx5_4");
  EXPECT_EQ(network_bandwidth(machine), gigabytes_per_second(97));
  EXPECT_EQ(machine.citations.back().fact, "NICs of a host: 2 of 48.5 GB/s in place of 8 of 48.5 GB/s");
  EXPECT_EQ(usable_nics(machine).size(), 2u);
}

TEST(WithNics, AddsMoreBesideThoseThatAreThere) {
  const Machine machine = with_nics(host("minsky"), 4, part("hdr"));
  ASSERT_EQ(machine.nics.size(), 4u);
  EXPECT_EQ(network_bandwidth(machine), gigabytes_per_second(4 * 24.2));
  EXPECT_EQ(machine.nics[2].name, "mlx5_2");
  EXPECT_EQ(machine.nics[2].numa, 0);
  EXPECT_EQ(machine.nics[3].numa, 1);
  EXPECT_THAT(machine.citations.back().fact, HasSubstr("mlx5_0 by PCIe of 15.8 GB/s"));
  const auto nics = rank_nics(machine);
  EXPECT_NE(nics[0], nics[1]) << "each GPU of a socket has one of its two";
}

TEST(WithNics, GivesAnotherKindOtherNames) {
  const Machine roce = with_nics(host("dgx-a100"), 8, part("100GbE", NicProtocol::roce));
  EXPECT_EQ(roce.nics[7].kind, NicKind::ethernet);
  EXPECT_EQ(roce.nics[7].name, "roce7");
  EXPECT_EQ(nic_protocol_of(roce), NicProtocol::roce);
  const Machine infiniband = with_nics(host("ethernet"), 2, part("edr"));
  EXPECT_EQ(infiniband.nics[0].name, "mlx5_0");
  EXPECT_EQ(nic_protocol_of(infiniband), NicProtocol::infiniband);
}

TEST(WithNics, HangsFirstOnesOnPackages) {
  Machine machine = small_machine();
  machine.nics.clear();
  std::erase_if(machine.links, [](const Link& link) {
    return link.from.kind == DeviceKind::nic || link.to.kind == DeviceKind::nic;
  });
  const Machine two = with_nics(machine, 2, part("edr"));
  EXPECT_EQ(two.nics.size(), 2u);
  EXPECT_NE(rank_nics(two)[0], rank_nics(two)[1]);
  EXPECT_THAT(usage_sentence([&] { with_nics(machine, 2, std::nullopt); }), HasSubstr("give their rate"));
  std::erase_if(machine.links, [](const Link& link) { return link.kind == LinkKind::pcie; });
  machine.gpus.clear();
  EXPECT_THAT(usage_sentence([&] { with_nics(machine, 2, part("edr")); }),
              HasSubstr("describe it in a TOML file"));
}

TEST(WithNics, LetsOthersGoDown) {
  Machine machine = host("dgx1-v100");
  machine.nics[3].kind = NicKind::ethernet;  // beside InfiniBand it is for management
  machine.nics[3].name = "eno1";
  const Machine more = with_nics(machine, 3, part("100GbE", NicProtocol::ethernet));
  EXPECT_EQ(usable_nics(more).size(), 3u);
  EXPECT_FALSE(more.nics[3].up());
}

TEST(WithNics, GivesPortsToThoseOfAMatrix) {
  const Machine matrix = parse_topo_matrix(
      "\tGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\tPIX\t0-7\t0\nNIC0\tPIX\t X "
      "\tPIX\t\t\n"
      "NIC1\tPIX\tPIX\t X \t\t\n",
      "matrix");
  const Machine machine = with_nics(matrix, 1, part("ndr"));
  EXPECT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(network_bandwidth(machine), gigabytes_per_second(48.5));
  EXPECT_THAT(usage_sentence([&] { with_nics(matrix, 1, std::nullopt); }), HasSubstr("give their rate"));
  EXPECT_THAT(usage_sentence([&] { without(matrix, matrix.nics[0].name); }),
              HasSubstr("say what the NICs carry"));
}

TEST(GpusPerHost, AreTheFirst) {
  const Machine machine = with_gpus_per_host(host("dgx-h100"), 4);
  EXPECT_EQ(machine.gpus.size(), 4u);
  EXPECT_EQ(machine.citations.back().fact, "4 of 8 GPUs of a host are used");
  EXPECT_THAT(usage_sentence([] { with_gpus_per_host(host("minsky"), 8); }),
              AllOf(HasSubstr("'minsky' has 4"), HasSubstr("from 1 to 4")));
}

TEST(Oversubscription, IsOfTheHostsUnderALeaf) {
  const Cluster cluster = with_oversubscription(preset("dgx-h100", 64), 2);
  EXPECT_EQ(cluster.fabric.leaf_uplink, gigabytes_per_second(32 * 8 * 48.5 / 2));
  EXPECT_EQ(cluster.fabric.citations.back().fact,
            "leaves of 32 hosts are oversubscribed 2:1, with 6.21 TB/s to the spine");
  for (const Citation& citation : cluster.fabric.citations)
    EXPECT_EQ(citation.fact.find("blocks nothing"), std::string::npos);
  EXPECT_NO_THROW(cluster.validate());
  for (const double bad : {0.0, 0.99, -2.0, std::nan(""), 1001.0})
    EXPECT_THAT(usage_sentence([&] { with_oversubscription(preset("dgx-h100", 1), bad); }),
                HasSubstr("give 1 to 1000"));
  EXPECT_THAT(usage_sentence([] { with_oversubscription(preset("minsky", 1), 2); }),
              HasSubstr("hosts_per_leaf"));
}

TEST(Oversubscription, IsReadAsARatio) {
  EXPECT_EQ(parse_oversubscription("2", "it"), 2);
  EXPECT_EQ(parse_oversubscription("2:1", "it"), 2);
  EXPECT_EQ(parse_oversubscription("3:2", "it"), 1.5);
  for (const char* bad : {"", "2:", ":2", ":1", ":", "two", "2:1:1", "2 ", "1e400", "-2:-1", "-2", "2:0",
                          "0:0", "0", "inf", "nan", "2:inf", "1e300:1e-300"}) {
    EXPECT_THAT(usage_sentence([&] { parse_oversubscription(bad, "it"); }),
                HasSubstr(std::string("it '") + bad + "' is not a ratio; write it as 2 or 2:1"));
  }
}

TEST(Uplinks, AreLostOneByOne) {
  const Cluster full = without_leaf_uplink(preset("dgx-h100", 64));
  EXPECT_DOUBLE_EQ(full.fabric.leaf_uplink.value, 255 * 48.5e9);
  const Cluster half =
      without_leaf_uplink(without_leaf_uplink(with_oversubscription(preset("dgx-h100", 64), 64)));
  EXPECT_DOUBLE_EQ(half.fabric.leaf_uplink.value, 2 * 48.5e9);
  EXPECT_THAT(usage_sentence([&] { without_leaf_uplink(without_leaf_uplink(half)); }),
              HasSubstr("has one uplink"));
  EXPECT_THAT(usage_sentence([] { without_leaf_uplink(preset("summit", 4)); }), HasSubstr("hosts_per_leaf"));
}

TEST(Without, ANicIsDown) {
  const Machine machine = without(host("dgx-a100"), "MLX5_3");
  EXPECT_FALSE(machine.nics[3].up());
  EXPECT_EQ(machine.citations.back().fact, "left out: mlx5_3, 7 of 8 NICs remain");
  EXPECT_THAT(usage_sentence([&] { without(machine, "mlx5_3"); }), HasSubstr("is down already"));
}

TEST(Without, AGpuIsGone) {
  const Machine machine = without(host("dgx-a100"), "gpu3");
  EXPECT_EQ(machine.ranks(), 7);
  EXPECT_EQ(machine.gpus[3].name, "gpu4");
  EXPECT_EQ(machine.citations.back().fact, "left out: gpu3, 7 of 8 GPUs remain");
  EXPECT_THAT(usage_sentence([] { without(with_gpus_per_host(host("minsky"), 1), "gpu0"); }),
              HasSubstr("alone"));
}

double gigabytes_between(const Machine& machine, DeviceId a, DeviceId b) {
  for (const Link& link : machine.links)
    if (link.from == a && link.to == b && link.kind == LinkKind::nvlink)
      return link.bandwidth.gigabytes_per_second();
  return 0;
}

TEST(Without, OneLinkOfAPairIsLost) {
  constexpr DeviceId kFirst{DeviceKind::gpu, 0};
  constexpr DeviceId kSecond{DeviceKind::gpu, 1};
  const Machine minsky = without(host("minsky"), "gpu0-gpu1");
  EXPECT_DOUBLE_EQ(gigabytes_between(minsky, kFirst, kSecond), 20);
  EXPECT_EQ(minsky.citations.back().fact, "left out: one link of gpu0 - gpu1, 1 of 2 remains");
  EXPECT_DOUBLE_EQ(gigabytes_between(without(minsky, "gpu1-gpu0"), kFirst, kSecond), 0);
  EXPECT_THAT(usage_sentence([&] { without(without(minsky, "gpu0-gpu1"), "gpu0-gpu1"); }),
              HasSubstr("no NVLink"));
  const Machine dgx = without(host("dgx-h100"), "gpu2-nvswitch0");
  EXPECT_DOUBLE_EQ(gigabytes_between(dgx, {DeviceKind::gpu, 2}, {DeviceKind::nvswitch, 0}), 17 * 25);
  EXPECT_THAT(usage_sentence([] { without(host("dgx-h100"), "gpu0-gpu1"); }),
              HasSubstr("name gpu0-nvswitch0"));
}

TEST(Without, RefusesOtherNames) {
  EXPECT_THAT(usage_sentence([] { without(host("minsky"), "mlx5_9"); }),
              AllOf(HasSubstr("unknown device 'mlx5_9'"), HasSubstr("gpu0-gpu1, or leaf-uplink")));
  EXPECT_THAT(usage_sentence([] { without(host("minsky"), "package0"); }), HasSubstr("would fall apart"));
  EXPECT_THAT(usage_sentence([] { without(host("minsky"), ""); }), HasSubstr("unknown device"));
  EXPECT_THAT(usage_sentence([] { without(host("minsky"), "mlx5_0-package0"); }),
              HasSubstr("no NVLink or xGMI"));
}

TEST(Without, LeavesWhatRoutesNeed) {
  Cluster cluster = preset("dgx-h100", 2);
  cluster.groups.front().machine = without(cluster.host(0), "mlx5_0");
  EXPECT_NO_THROW(Router{cluster});
}

}  // namespace
}  // namespace polyring
