// Machines that are described in TOML: what becomes of each key, and which descriptions are refused.
#include "topology/inventory/formats/machine_toml.hpp"

#include "base/index.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/read_inventory.hpp"
#include "topology/link_names.hpp"
#include "topology/presets.hpp"
#include "topology/presets/products.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using testing::usage_sentence;

Cluster described(std::string_view text) { return parse_machine_toml(text, "site.toml"); }
Machine machine_of(std::string_view text) { return described(text).host(0); }

constexpr const char* kH100 = R"(
name = "eight H100"
sockets = 2
gpus = { count = 8, product = "H100-SXM", nvlink = 4, topology = "switch" }
nics = { per_switch = 2, rate = "400Gb/s", kind = "infiniband" }
pcie = { generation = 5, switches = 4 }
fabric = { hosts_per_leaf = 32 }
)";

/// In JSON, without who says it and how products are called.
std::string bare(Cluster cluster) {
  Machine& machine = cluster.groups.front().machine;
  cluster.name = machine.name = machine.model = "";
  machine.citations.clear();
  cluster.fabric.citations.clear();
  for (Nic& nic : machine.nics) nic.model = "";
  return probe_json(cluster);
}

TEST(MachineToml, IsThePresetWhereItSaysTheSame) {
  EXPECT_EQ(bare(described(kH100)), bare(preset("dgx-h100", 1)));
  EXPECT_EQ(bare(described(R"(gpus = { count = 8, product = "h100" }
nics = { count = 8, rate = "ndr" }
fabric = { hosts_per_leaf = 32 })")),
            bare(preset("dgx-h100", 1)))
      << "what is usual";
  EXPECT_EQ(bare(described(R"(gpus = { count = 8, product = "A100" }
nics = { count = 8, rate = "hdr" }
fabric = { hosts_per_leaf = 20 })")),
            bare(preset("dgx-a100", 1)));
  EXPECT_EQ(bare(described(R"(gpus = { count = 8, product = "V100" }
nics = { per_switch = 1, rate = "edr" })")),
            bare(preset("dgx1-v100", 1)));
  EXPECT_EQ(bare(described(R"(base = "minsky")")), bare(preset("minsky", 1)));
}

TEST(MachineToml, SaysWhoStatedEachNumber) {
  const Cluster cluster = described(kH100);
  const auto cited = [&](const std::string& fact, const std::string& source) {
    EXPECT_THAT(cluster.host(0).citations, Contains(AllOf(Field(&Citation::fact, HasSubstr(fact)),
                                                          Field(&Citation::source, HasSubstr(source)))));
  };
  cited("H100 SXM5: 80 GB", "data sheet");
  cited("8 H100-SXM a host", "as stated in site.toml:4");
  cited("18 NVLinks of a GPU, 25.0 GB/s per direction each, to NVSwitches", "as stated in site.toml:4");
  cited("NDR 4x: 48.5 GB/s", "as stated in site.toml:5; InfiniBand Trade");
  cited("8 NICs a host", "as stated in site.toml:5");
  cited("PCIe gen 5", "as stated in site.toml:6");
  cited("56 cores", "assumed: as in the DGX H100");
  EXPECT_THAT(cluster.fabric.citations, Contains(Field(&Citation::source, "as stated in site.toml:7")));
  EXPECT_EQ(cluster.name, "eight H100");
  EXPECT_EQ(machine_of("sockets = 1").name, "site");
}

/// "18 x" between these GPUs, or 0.
int links_between(const Machine& machine, int a, int b) {
  for (const Link& link : machine.links) {
    if (link.from != DeviceId{DeviceKind::gpu, a} || link.to != DeviceId{DeviceKind::gpu, b}) continue;
    return link.kind == LinkKind::xgmi ? link.count : nvlinks_in(machine, link);
  }
  return 0;
}

TEST(MachineToml, JoinsGpusAsIsUsualOrAsStated) {
  const Machine four = machine_of(R"(gpus = { count = 4, product = "V100" })");
  for (int b = 1; b < 4; ++b) EXPECT_EQ(links_between(four, 0, b), 2);
  const Machine p100 = machine_of(R"(gpus = { count = 4, product = "P100" })");
  EXPECT_EQ(links_between(p100, 1, 3), 1) << "the fourth link stays free";
  const Machine amd = machine_of(R"(gpus = { count = 8, product = "MI300X" })");
  EXPECT_EQ(links_between(amd, 2, 7), 1);
  EXPECT_EQ(amd.links.back().kind, LinkKind::xgmi);
  EXPECT_EQ(amd.links.back().bandwidth, gigabytes_per_second(64));
  const Machine cards = machine_of(R"(gpus = { count = 4, product = "A100-PCIE-80GB" })");
  EXPECT_EQ(links_between(cards, 0, 1), 0);
  const Machine bridged =
      machine_of(R"(gpus = { count = 4, product = "A100-PCIE-80GB", topology = "pairs" })");
  EXPECT_EQ(links_between(bridged, 0, 1), 12);
  EXPECT_EQ(links_between(bridged, 1, 2), 0);
  const Machine none = machine_of(R"(gpus = { count = 4, product = "H100", nvlink = "pcie" })");
  EXPECT_EQ(links_between(none, 0, 1), 0);
  EXPECT_EQ(none.nvswitches, 0);
  const Machine half = machine_of(R"(gpus = { count = 8, product = "H100", links = 9 })");
  EXPECT_EQ(half.links.back().bandwidth, gigabytes_per_second(225));
  const Machine grace = machine_of(R"(gpus = { count = 1, product = "GH200" })");
  EXPECT_EQ(grace.links.back().kind, LinkKind::c2c);
  EXPECT_EQ(grace.packages.front().cpu.architecture, "arm64");
}

TEST(MachineToml, PutsNicsWhereTheyBelong) {
  const Machine one = machine_of(R"(gpus = { count = 8, product = "H100" }
nics = { count = 1, rate = "100GbE" })");
  EXPECT_EQ(one.nics.front().name, "eth0");
  EXPECT_EQ(one.nics.front().bandwidth(), gigabytes_per_second(12.5));
  const Machine efa = machine_of(R"(gpus = { count = 8, product = "A100" }
nics = { count = 4, rate = "100Gb/s", kind = "EFA", where = "socket" }
[sockets]
count = 2
cores = 48
memory = "1024G"
memory_bandwidth = "200GB/s"
bus = "60GB/s")");
  EXPECT_EQ(efa.nics[3].name, "efa3");
  EXPECT_EQ(efa.nics[2].numa, 1);
  EXPECT_EQ(efa.cores(), 96);
  EXPECT_EQ(efa.packages[1].memory_bandwidth, gigabytes_per_second(200));
  const Link& bus = efa.links.front();
  EXPECT_EQ(bus.kind, LinkKind::socket_bus);
  EXPECT_EQ(bus.bandwidth, gigabytes_per_second(60));
}

TEST(MachineToml, HasAFabricOfItsNics) {
  const Cluster oversubscribed = described(R"(hosts = 64
gpus = { count = 8, product = "H100" }
nics = { count = 8, rate = "400Gb/s", kind = "roce" }
fabric = { hosts_per_leaf = 16, oversubscription = 4, latency = "3us", spine_latency = "1us" })");
  EXPECT_EQ(oversubscribed.host_count(), 64);
  EXPECT_EQ(oversubscribed.fabric.leaf_uplink, gigabytes_per_second(16.0 * 400 / 4));
  EXPECT_DOUBLE_EQ(oversubscribed.fabric.latency.value, 3e-6);
  EXPECT_DOUBLE_EQ(oversubscribed.fabric.spine_latency.value, 1e-6);
  EXPECT_THAT(oversubscribed.fabric.citations,
              Not(Contains(Field(&Citation::fact, HasSubstr("blocks nothing")))));
  EXPECT_DOUBLE_EQ(described("nics = { count = 1, rate = \"25GbE\" }").fabric.latency.value, 15e-6);
  EXPECT_DOUBLE_EQ(described("nics = { count = 1, rate = \"ndr\" }").fabric.latency.value, 1.88e-6);
}

TEST(MachineToml, ChangesABase) {
  const Machine h200 = machine_of("base = \"dgx-h100\"\ngpus = { product = \"H200-SXM\" }");
  EXPECT_EQ(h200.gpus[7].memory, presets::gibibytes(141));
  EXPECT_EQ(h200.gpus[7].model, "NVIDIA H200");
  const Machine b200 = machine_of("base = \"dgx-h100\"\ngpus = { product = \"B200-SXM\" }");
  EXPECT_EQ(b200.links.back().bandwidth, gigabytes_per_second(900)) << "as many links, each of NVLink 5";
  const Machine half = machine_of(R"(base = "dgx-h100"
gpus = { count = 4, links = 9 }
nics = { count = 4, rate = "200Gb/s" }
pcie = 4
sockets = { cores = 32 })");
  EXPECT_EQ(half.gpus.size(), 4u);
  EXPECT_EQ(half.nics.size(), 4u);
  EXPECT_EQ(half.nics[0].bandwidth(), gigabytes_per_second(24.2)) << "HDR, as the base has InfiniBand";
  EXPECT_EQ(half.cores(), 64);
  EXPECT_THAT(half.citations, Contains(Field(&Citation::source, "as stated in site.toml:3")));
  for (const Link& link : half.links) {
    if (link.kind == LinkKind::socket_bus) continue;
    const double expected = link.kind == LinkKind::pcie ? 31.5 : 225;
    EXPECT_DOUBLE_EQ(link.bandwidth.gigabytes_per_second(), expected);
  }
  EXPECT_EQ(described("base = \"dgx-a100\"\nfabric = { oversubscription = 2 }").fabric.leaf_uplink,
            gigabytes_per_second(20 * 193.6 / 2));
}

TEST(MachineToml, IsReadByItsName) {
  const TemporaryFolder folder;
  const auto file = folder.write("mine.toml", kH100);
  EXPECT_EQ(machine_named(file.string()).name, "eight H100");
  const std::array<std::filesystem::path, 1> files{file};
  EXPECT_EQ(read_inventory(files).cluster.name, "eight H100");
  EXPECT_EQ(machine_named("minsky").name, "minsky");
  EXPECT_TRUE(is_machine_file("x.TOML") && is_machine_file("./x") && !is_machine_file("dgx-h100"));
  EXPECT_THAT(usage_sentence([&] { machine_named((folder.path() / "none.toml").string()); }),
              HasSubstr("none.toml"));
  const auto json = folder.write("x.json", probe_json(preset("minsky", 1)));
  EXPECT_THAT(usage_sentence([&] { machine_named(json.string()); }), HasSubstr("--from"));
}

struct Bad {
  std::string text;
  std::string sentence;
};

TEST(MachineToml, RefusesWithTheLineAndARemedy) {
  const std::string gpus = "gpus = { count = 8, product = \"H100\" }\n";
  const std::string nics = "nics = { count = 8, rate = \"ndr\" }\n";
  const std::vector<Bad> bad{
      {"gpus = {", "site.toml:1: this is not TOML: "},
      {"hosts = 1\nhosts = 2", "site.toml:2: this is not TOML: "},
      {"\ngpu = 8", "site.toml:2: unknown key 'gpu'; did you mean gpus?"},
      {"[gpus]\ncount = 8\nprodukt = \"H100\"",
       "site.toml:3: unknown key of gpus 'produkt'; did you mean product?"},
      {"hosts = \"two\"", "site.toml:1: 'hosts' must be a whole number"},
      {"hosts = 1.5", "'hosts' must be a whole number"},
      {"hosts = -1", "site.toml:1: hosts is -1; give 1 to 1048576"},
      {"hosts = 0", "site.toml:1: hosts is 0; give 1 to 1048576"},
      {"name = 3", "'name' must be text"},
      {"hosts = 99999999999", "site.toml:1: 'hosts' is 99999999999, which no machine has"},
      {"name = \"\"", "site.toml:1: 'name' is empty; write such as \"my cluster\", or leave it out"},
      {"name = \" \"", "'name' is empty"},
      {"gpus = 8", "'gpus' must be a table, such as { count = 8"},
      {"sockets = \"two\"", "'sockets' must be a table, such as { count = 2, cores = 64 }, or a number"},
      {"gpus = { count = 8 }", R"(gpus.product is missing; name it, such as "H100-SXM")"},
      {"gpus = { product = \"H100\" }", "gpus.count is missing"},
      {"gpus = { count = 8, product = \"H1000\" }", "site.toml:1: unknown GPU 'H1000'; did you mean"},
      {"gpus = { count = 65, product = \"H100\" }", "gpus.count is 65; give 0 to 64"},
      {"gpus = { count = 8, product = \"P100\", nvlink = 4 }",
       "P100-SXM2 has NVLink 1; write nvlink = 1, or leave it out"},
      {"gpus = { count = 8, product = \"MI300X\", nvlink = 4 }",
       "MI300X has xGMI links; write nvlink = \"xgmi\""},
      {"gpus = { count = 4, product = \"L40S\", nvlink = 4 }", "L40S has no NVLink; write nvlink = \"none\""},
      {"gpus = { count = 4, product = \"L40S\", topology = \"pairs\" }",
       "L40S has no NVLink; leave gpus.topology"},
      {"gpus = { count = 4, product = \"H100\", nvlink = \"four\" }",
       "'gpus.nvlink' must be NVLink's version"},
      {"gpus = { count = 4, product = \"H100\", nvlink = \"none\", links = 2 }", "leave one of them out"},
      {"gpus = { count = 8, product = \"H100\", links = 19 }",
       "H100-SXM has 18 NVLinks, not 19; give at most that"},
      {"sockets = 1\ngpus = { count = 5, product = \"V100\", topology = \"mesh\", links = 6 }",
       "site.toml:2: 6 NVLinks of each of 5 GPUs do not make a mesh, which has as many to each of the 4 "
       "others; give 4"},
      {"gpus = { count = 6, product = \"P100\" }",
       "a mesh of 6 GPUs needs 5 links of each, and P100-SXM2 uses 4"},
      {"gpus = { count = 4, product = \"V100\", topology = \"cube-mesh\" }", "a cube mesh has 8 GPUs, not 4"},
      {"gpus = { count = 8, product = \"H100\", topology = \"cube-mesh\" }",
       "a cube mesh takes 4 or 6 NVLinks"},
      {"gpus = { count = 8, product = \"MI300X\", topology = \"switch\" }", "write topology = \"mesh\""},
      {"sockets = 1\ngpus = { count = 3, product = \"V100\", topology = \"pairs\" }",
       "3 GPUs cannot be joined in pairs"},
      {"gpus = { count = 8, product = \"H100\", topology = \"ring\" }", "unknown gpus.topology 'ring'"},
      {"gpus = { count = 1, product = \"H100\", links = 2 }", "one GPU has no other to be joined to"},
      {"gpus = { count = 4, product = \"GB200\" }", "NVLinks to other hosts"},
      {"sockets = 2\ngpus = { count = 1, product = \"GH200\" }", "each has a socket of its own"},
      {"sockets = 3\n" + gpus, "site.toml:1: 8 GPUs cannot be spread evenly over 3 sockets"},
      {gpus + "pcie = { switches = 3 }", "site.toml:2: 3 PCIe switches cannot be shared evenly by 2 sockets"},
      {gpus + "pcie = { switches = 6 }", "8 GPUs cannot be spread evenly over 6 PCIe switches"},
      {gpus + "pcie = 7", "pcie.generation is 7; give 3 to 6"},
      {"sockets = 17", "sockets is 17; give 1 to 16"},
      {"sockets = { memory = \"lots\" }", "sockets.memory 'lots' is not a size"},
      {"sockets = { bus = \"-1GB/s\" }", "is not a bandwidth above 0"},
      {"hosts = 2\n" + gpus, "site.toml:1: 2 hosts have no NICs to reach each other; add nics"},
      {"hosts = 2\nnics = { count = 0 }", "2 hosts have no NICs"},
      {"nics = { count = 2 }", "site.toml:1: nics.rate is missing"},
      {"nics = { count = 2, rate = \"400Gb/s\" }", "NICs of several kinds have 400Gb/s; add kind"},
      {"nics = { count = 2, rate = \"400\" }",
       "site.toml:1: nics.rate '400' is not a bandwidth above 0; write it as"},
      {"nics = { count = 2, rate = \"nrd\" }", "unknown rate 'nrd'; did you mean ndr?"},
      {"nics = { count = 2, rate = \"ndr\", kind = \"roce\" }",
       "ndr is a generation of InfiniBand, and the NICs are RoCE"},
      {"nics = { count = 2, rate = \"ndr\", kind = \"token ring\" }", "unknown nics.kind 'token ring'"},
      {"nics = { count = 2, rate = \"400GB/s\", kind = \"roce\" }", "more than any NIC port carries"},
      {"pcie = 4\nnics = { count = 2, rate = \"ndr\" }",
       "more than PCIe 4 x16 carries, 31.5 GB/s; give another rate, or pcie = 5"},
      {"nics = { per_switch = 2, rate = \"ndr\" }", "there are no PCIe switches for nics.per_switch"},
      {gpus + "nics = { per_switch = 1, count = 8, rate = \"ndr\" }", "per_switch 1 on 4 switches makes 4"},
      {gpus + "nics = { count = 3, rate = \"ndr\", where = \"switch\" }",
       "3 NICs cannot be spread evenly over 4 PCIe switches"},
      {nics + "fabric = { hosts_per_leaf = 16, oversubscription = 0.5 }",
       "site.toml:2: an oversubscription of 0.5"},
      {nics + "fabric = { hosts_per_leaf = 16, oversubscription = nan }", "oversubscription of nan"},
      {nics + "fabric = { oversubscription = 2 }", "needs leaf switches; add hosts_per_leaf"},
      {nics + "fabric = { oversubscription = \"2:\" }",
       "site.toml:2: fabric.oversubscription '2:' is not a ratio; write it as 2 or 2:1"},
      {nics + "fabric = { oversubscription = [2] }", "'fabric.oversubscription' must be a ratio"},
      {nics + "fabric = { latency = 2 }", "'fabric.latency' must be text, such as \"1.7us\""},
      {nics + "fabric = { latency = \"5s\" }", "more than any network takes"},
      {nics + "fabric = { hosts_per_leaf = 0 }", "fabric.hosts_per_leaf is 0; give 1"},
      {"base = \"dgx-h10\"", "site.toml:1: unknown machine 'dgx-h10'; did you mean dgx-h100?"},
      {"base = \"dgx-h100\"\nsockets = 4",
       "site.toml:2: the number of sockets cannot differ from the base 'dgx-h100'"},
      {"base = \"dgx-h100\"\ngpus = { count = 16 }",
       "site.toml:2: 16 GPUs of each host were asked for, but machine 'dgx-h100' has 8"},
      {"base = \"dgx-h100\"\ngpus = { product = \"A100\" }",
       "A100-SXM4-40GB has 12 links to other GPUs and H100-SXM has 18"},
      {"base = \"dgx-h100\"\ngpus = { nvlink = 3 }", "the GPUs have NVLink 4; leave nvlink out"},
      {"base = \"dgx-h100\"\ngpus = { links = 20 }", "has 18 links, not 20"},
      {"base = \"dgx-h100\"\nnics = { kind = \"roce\" }", "nics.kind says nothing without nics.rate"},
      {"base = \"dgx1-v100\"\nfabric = { oversubscription = 2 }", "needs leaf switches"},
  };
  for (const Bad& one : bad) {
    SCOPED_TRACE(one.text);
    const std::string sentence = usage_sentence([&] { described(one.text); });
    EXPECT_THAT(sentence, AllOf(StartsWith("site.toml:"), HasSubstr(one.sentence)));
  }
  EXPECT_THAT(usage_sentence([] { described(std::string(40'000, '\n')); }), HasSubstr("at most 32KiB"));
}

}  // namespace
}  // namespace polyring
