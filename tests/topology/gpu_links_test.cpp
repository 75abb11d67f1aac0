// How fast NVLinks and xGMI links are, and which products have how many.
#include "topology/gpu_links.hpp"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

TEST(GpuLinks, AreMissedOnProductsThatAlwaysHaveThem) {
  Machine machine = preset("dgx-a100", 1).host(0);
  const auto named = [&](const char* model) {
    for (Gpu& gpu : machine.gpus) gpu.model = model;
    return misses_gpu_links(machine);
  };
  EXPECT_FALSE(named("NVIDIA A100-SXM4-40GB"));
  std::erase_if(machine.links, [](const Link& link) { return link.kind == LinkKind::nvlink; });
  EXPECT_TRUE(named("NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(named("GA100 [A100 SXM4 40GB]"));
  EXPECT_TRUE(named("NVIDIA H100 80GB HBM3"));
  EXPECT_TRUE(named("AMD Instinct MI300X"));
  for (const char* module : {"NVIDIA H200", "NVIDIA H20", "NVIDIA H20-3e", "NVIDIA H800",
                             "AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2", "AMD Instinct MI325 OAM",
                             "device 10de:2335", "device 10de:2330", "device 1002:74a1",
                             // MI308X, MI300X HF and VF, MI325X VF, MI355X, MI350X VF
                             "AMD Instinct MI308X", "device 1002:74a2", "device 1002:74a9",
                             "device 1002:74b5", "device 1002:74b9", "device 1002:75a3", "device 1002:75b0"})
    EXPECT_TRUE(named(module)) << module;
  for (const char* card :
       {"NVIDIA H200 NVL", "NVIDIA H800 PCIe", "GH100 [H800 PCIe]", "NVIDIA H20 PCIe", "AMD INSTINCT MI210",
        "device 10de:2331", "device 10de:233b", "device 1002:740f", "device 1002:7448", "device 1002:7550"})
    EXPECT_FALSE(named(card)) << card;
  EXPECT_FALSE(named("NVIDIA A100-PCIE-40GB"));
  EXPECT_FALSE(named("NVIDIA H100 NVL"));
  EXPECT_FALSE(named(""));
  machine.gpus.resize(1);
  EXPECT_FALSE(named("NVIDIA A100-SXM4-40GB"));
}

TEST(GpuLinks, KnowProductsByWholeWords) {
  EXPECT_EQ(compute_capability_of("NVIDIA A100-SXM4-40GB"), 80);
  EXPECT_EQ(compute_capability_of("NVIDIA GH200 480GB"), 90);
  EXPECT_EQ(compute_capability_of("GV100GL [Tesla V100 SXM2 16GB]"), 70);
  EXPECT_EQ(compute_capability_of("A1000"), 0);
  EXPECT_FALSE(nvlink_rate(0).bandwidth.known());
  EXPECT_FALSE(nvlink_rate(89).bandwidth.known());
}

// As NVML names them, and as the list of PCI IDs does.
TEST(GpuLinks, KnowCardsThatBridgesJoin) {
  const auto known = [](std::string_view name) {
    return std::pair(compute_capability_of(name), most_nvlinks_of(name));
  };
  EXPECT_EQ(known("Quadro GP100"), std::pair(60, 4));
  EXPECT_EQ(known("GV100GL [Quadro GV100]"), std::pair(70, 4));
  EXPECT_EQ(known("TITAN RTX"), std::pair(75, 2));
  EXPECT_EQ(known("Quadro RTX 8000"), std::pair(75, 2));
  EXPECT_EQ(known("TU102GL [Quadro RTX 6000/8000]"), std::pair(75, 2));
  EXPECT_EQ(known("Quadro RTX 5000"), std::pair(75, 1));
  EXPECT_EQ(known("GeForce RTX 2080 Ti"), std::pair(75, 2));
  EXPECT_EQ(known("NVIDIA GeForce RTX 2080 SUPER"), std::pair(75, 1));
  EXPECT_EQ(known("NVIDIA GeForce RTX 2080"), std::pair(75, 1));
  EXPECT_EQ(known("NVIDIA GeForce RTX 3090"), std::pair(86, 4));
  for (const char* name : {"NVIDIA RTX A6000", "NVIDIA RTX A5500", "NVIDIA RTX A5000", "NVIDIA RTX A4500"})
    EXPECT_EQ(known(name), std::pair(86, 4)) << name;
  for (const char* name : {"NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX A4000", "NVIDIA GeForce RTX 3080",
                           "TITAN V", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX", ""})
    EXPECT_EQ(known(name), std::pair(0, 0)) << name;
}

TEST(GpuLinks, AgreeWithTheFactsFile) {
  const char* path = std::getenv("POLYRING_PUBLISHED");
  if (path == nullptr) GTEST_SKIP() << "POLYRING_PUBLISHED does not name a published.json";
  std::ifstream file(path);
  const auto facts = nlohmann::json::parse(file).at("links_GBps_per_direction");
  for (const NvlinkGeneration& generation : nvlink_generations()) {
    if (generation.compute_capability == 86) continue;  // bridges of two boards: other than a data centre's
    const double published = facts.at(fmt::format("nvlink{}_per_link", generation.version));
    EXPECT_EQ(generation.bandwidth, gigabytes_per_second(published)) << generation.source;
  }
}

// What AMD's and NVIDIA's data sheets have of all links of a GPU together, both ways.
TEST(GpuLinks, AddUpToTheDataSheets) {
  const auto both_ways = [](int links, GpuLinkRate rate) {
    return 2 * links * rate.bandwidth.gigabytes_per_second();
  };
  const auto of_product = [&](std::string_view name) {
    return both_ways(most_nvlinks_of(name), nvlink_rate(compute_capability_of(name)));
  };
  const std::pair<const char*, double> nvlinks[] = {
      {"P100", 160},      {"V100", 300},           {"Quadro GV100", 200},
      {"TITAN RTX", 100}, {"Quadro RTX 5000", 50}, {"RTX 2080", 50},
      {"A100", 600},      {"A800", 400},           {"A30", 200},
      {"A40", 112.5},     {"RTX 3090", 112.5},     {"A4500", 112.5},
      {"H100", 900},      {"H800", 400},           {"GH200", 900},
      {"B200", 1800},     {"GB300", 1800}};
  for (const auto& [name, gigabytes] : nvlinks) EXPECT_DOUBLE_EQ(of_product(name), gigabytes) << name;
  EXPECT_DOUBLE_EQ(both_ways(2, xgmi_rate("gfx906")), 184);
  EXPECT_DOUBLE_EQ(both_ways(3, xgmi_rate("gfx908")), 276);
  EXPECT_DOUBLE_EQ(both_ways(8, xgmi_rate("gfx90a")), 800);
  EXPECT_DOUBLE_EQ(both_ways(7, xgmi_rate("gfx942")), 896);
  EXPECT_NEAR(both_ways(7, xgmi_rate("gfx950")), 1075, 0.5);
}

}  // namespace
}  // namespace polyring
