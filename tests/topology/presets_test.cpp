// The catalogue: facts that people know about these machines, and golden files of how each is printed.
#include "topology/presets.hpp"

#include <set>

#include "tests/topology/support.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_matrix.hpp"
#include "topology/inventory/formats/probe_paths.hpp"
#include "topology/inventory/formats/probe_text.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using testing::expect_golden;
using ::testing::HasSubstr;
using testing::usage_sentence;

class Presets : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Presets, ValidateAndCiteTheirNumbers) {
  const Cluster cluster = preset(GetParam(), 3);
  EXPECT_NO_THROW(cluster.validate());
  EXPECT_EQ(cluster.host_count(), 3);
  EXPECT_EQ(cluster.host(0).name, GetParam());
  EXPECT_FALSE(cluster.fabric.citations.empty());
  EXPECT_GT(cluster.fabric.latency.value, 0);
  for (const Citation& citation : cluster.host(0).citations) {
    EXPECT_FALSE(citation.fact.empty());
    EXPECT_FALSE(citation.source.empty()) << citation.fact;
  }
}

TEST_P(Presets, LeaveNoLinkOrPortUnknown) {
  const Machine machine = preset(GetParam(), 1).host(0);
  for (const Link& link : machine.links) {
    EXPECT_TRUE(link.bandwidth.known()) << machine.device_name(link.from);
    EXPECT_GT(link.latency.value, 0);
  }
  for (const Gpu& gpu : machine.gpus) EXPECT_TRUE(gpu.memory_bandwidth.known() && gpu.memory.value > 0);
  for (const Nic& nic : machine.nics) EXPECT_TRUE(nic.up() && nic.bandwidth().known());
}

TEST_P(Presets, PrintAsTheirGoldenFiles) {
  const Cluster cluster = preset(GetParam(), 1);
  const std::string name(GetParam());
  expect_golden("probe/" + name + ".txt", probe_text(cluster));
  expect_golden("probe/" + name + ".matrix", probe_matrix(cluster));
  expect_golden("probe/" + name + ".paths", probe_paths(cluster));
  // The fuzzer's seeds. Between them they have every kind of device and link, and each key, with and without
  // a value.
  if (name == "minsky" || name == "dgx-a100" || name == "ac922")
    expect_golden("probe/" + name + ".json", probe_json(cluster));
}

TEST_P(Presets, ReadBackFromJson) {
  const std::string json = probe_json(preset(GetParam(), 64));
  const Cluster again = parse_probe_json(json, "memory");
  EXPECT_EQ(probe_json(again), json);
  EXPECT_EQ(probe_text(again), probe_text(preset(GetParam(), 64)));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Presets, ::testing::ValuesIn(preset_names()), [](const auto& row) {
  std::string name(row.param);
  std::ranges::replace(name, '-', '_');
  return name;
});

struct Facts {
  std::string_view name;
  std::size_t gpus;
  std::size_t nics;
  double nic_gigabytes;     // of all NICs together
  double nvlink_gigabytes;  // out of one GPU, over all its NVLinks
  double memory_gigabytes;  // per second
};

double nvlink_of(const Machine& machine, DeviceId gpu) {
  double sum = 0;
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::nvlink && (link.from == gpu || link.to == gpu))
      sum += link.bandwidth.value / 1e9;
  }
  return sum;
}

// Per GPU: 4 NVLink 1.0 of 20 GB/s, 6 NVLink 2.0, 12 NVLink 3 and 18 NVLink 4 of 25 GB/s.
TEST(Catalogue, HoldsWhatIsKnownOfEachMachine) {
  for (const Facts& facts :
       {Facts{"minsky", 4, 2, 24.2, 80, 732}, Facts{"ac922", 4, 2, 24.2, 150, 900},
        Facts{"summit", 6, 2, 24.2, 150, 900}, Facts{"dgx1-p100", 8, 4, 48.4, 80, 732},
        Facts{"dgx1-v100", 8, 4, 48.4, 150, 900}, Facts{"big-basin", 8, 1, 6.25, 80, 732},
        Facts{"dgx-a100", 8, 8, 193.6, 300, 1555}, Facts{"dgx-h100", 8, 8, 388, 450, 3350},
        Facts{"ethernet", 4, 1, 0.125, 0, 732}, Facts{"p100-roce", 4, 1, 3.125, 0, 732},
        Facts{"v100-roce", 4, 1, 3.125, 0, 900}, Facts{"dgx-h200", 8, 8, 388, 450, 4800},
        Facts{"dgx-b200", 8, 8, 388, 900, 8000}, Facts{"gb200-nvl72", 4, 4, 194, 900, 8000},
        Facts{"mi300x", 8, 8, 388, 0, 5300}, Facts{"aws-p4d", 8, 4, 50, 300, 1555},
        Facts{"aws-p5", 8, 32, 400, 450, 3350}, Facts{"azure-nd-h100-v5", 8, 8, 388, 450, 3350},
        Facts{"gcp-a3-mega", 8, 8, 200, 450, 3350}}) {
    const Machine machine = preset(facts.name, 1).host(0);
    EXPECT_EQ(machine.packages.size(), 2u) << facts.name;
    EXPECT_EQ(machine.gpus.size(), facts.gpus) << facts.name;
    EXPECT_EQ(machine.nics.size(), facts.nics) << facts.name;
    double nics = 0;
    for (const Nic& nic : machine.nics) nics += nic.bandwidth().gigabytes_per_second();
    EXPECT_NEAR(nics, facts.nic_gigabytes, 1e-9) << facts.name;
    for (int i = 0; i < machine.ranks(); ++i) {
      EXPECT_NEAR(nvlink_of(machine, {DeviceKind::gpu, i}), facts.nvlink_gigabytes, 1e-9) << facts.name << i;
      EXPECT_DOUBLE_EQ(machine.gpus[static_cast<std::size_t>(i)].memory_bandwidth.value,
                       facts.memory_gigabytes * 1e9);
    }
  }
  EXPECT_EQ(preset_names().size(), 21u);
  EXPECT_EQ(preset("gh200", 1).host(0).packages.size(), 1u);
  EXPECT_EQ(preset("gh200-quad", 1).host(0).packages.size(), 4u);
}

TEST(Catalogue, SummitIsAsLargeAsPlansGo) { EXPECT_EQ(preset("summit", 4608).ranks(), 27648); }

TEST(Catalogue, ListsItsNamesForAnUnknownOne) {
  EXPECT_THAT(usage_sentence([] { preset("minski", 1); }),
              AllOf(HasSubstr("'minski'"), HasSubstr("minsky, ac922"), HasSubstr("ethernet")));
  EXPECT_THAT(usage_sentence([] { preset("minsky", 0); }), HasSubstr("0 hosts"));
}

}  // namespace
}  // namespace polyring
