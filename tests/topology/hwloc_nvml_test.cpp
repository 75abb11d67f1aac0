// What releases of hwloc write wrongly of NVIDIA's GPUs, and what becomes of it.
#include <fmt/format.h>

#include "tests/topology/support.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::links_of;

/// Two GPUs, each right below a root port, as hwloc writes them.
struct File {
  std::string version = "2.9.0";
  std::string model = "NVIDIA A100-SXM4-40GB";
  std::string backend = "NVML";
  double gpu = 15.753846;   // GB/s, as hwloc has the link
  double port = 31.507692;  // 0: unknown
  int nvlinks = 200000;     // MB/s between the two; 0: no matrix

  std::string gpu_text(int index) const {
    return fmt::format(
        R"(<object type="Bridge" gp_index="{0}" bridge_type="1-1" depth="1" bridge_pci="0000:[0{1}-0{1}]" pci_busid="0000:00:0{1}.0" pci_type="0604 [8086:6f08] [0000:0000] 01" pci_link_speed="{2:.6f}">
<object type="PCIDev" gp_index="{3}" pci_busid="0000:0{1}:00.0" pci_type="0302 [10de:20b0] [0000:0000] 00" pci_link_speed="{4:.6f}">
<object type="OSDev" gp_index="{5}" name="nvml{6}" osdev_type="1"><info name="Backend" value="{7}"/><info name="GPUModel" value="{8}"/></object>
</object></object>)",
        10 * index + 10, index + 1, port, 10 * index + 11, gpu, 10 * index + 12, index, backend, model);
  }

  std::string matrix() const {
    if (nvlinks == 0) return {};
    const std::string values = fmt::format("1000000 {0} {0} 1000000 ", nvlinks);
    return fmt::format(
        R"(<distances2 type="OSDev" nbobjs="2" kind="9" name="NVLinkBandwidth" indexing="gp">
<indexes length="6">12 22 </indexes><u64values length="{}">{}</u64values></distances2>)",
        values.size(), values);
  }

  Machine read() const {
    const std::string sets = R"(cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1")";
    const std::string info =
        version.empty() ? "" : fmt::format(R"(<info name="hwlocVersion" value="{}"/>)", version);
    return parse_hwloc_xml(
        fmt::format(
            R"(<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine" os_index="0" {0} allowed_cpuset="0x1" allowed_nodeset="0x1" gp_index="1">{1}
<object type="Package" os_index="0" {0} gp_index="2"><object type="NUMANode" os_index="0" {0} gp_index="3" local_memory="1073741824"/>
<object type="PU" os_index="0" {0} gp_index="4"/>
<object type="Bridge" gp_index="5" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">{2}{3}</object>
</object></object>{4}</topology>)",
            sets, info, gpu_text(0), gpu_text(1), matrix()),
        "node.xml");
  }
};

/// The NVLink's bandwidth in GB/s; -1 when there is none.
double nvlink(const Machine& machine) {
  for (const Link& link : machine.links) {
    if (link.kind == LinkKind::nvlink) return link.bandwidth.gigabytes_per_second();
  }
  return -1;
}

double pcie(const Machine& machine) { return machine.links.front().bandwidth.gigabytes_per_second(); }

TEST(HwlocNvml, HalvesLinksThatCountedTwice) {
  const Machine machine = File{}.read();
  EXPECT_DOUBLE_EQ(nvlink(machine), 100);
  EXPECT_THAT(machine.remarks, ::testing::Contains(AllOf(HasSubstr("hwloc 2.9.0"), HasSubstr("gpu0"),
                                                         HasSubstr("more for an NVLink"))));
  EXPECT_DOUBLE_EQ(nvlink(File{.version = "2.5.0a1-git"}.read()), 100);
  EXPECT_DOUBLE_EQ(nvlink(File{.model = "Quadro RTX 8000", .nvlinks = 100000}.read()), 50);
  EXPECT_DOUBLE_EQ(nvlink(File{.model = "NVIDIA RTX A6000", .nvlinks = 200000}.read()), 56.25);
}

TEST(HwlocNvml, KeepsLinksThatCountedOnce) {
  for (const char* version : {"2.9.1", "2.10.0", "2.12.2", ""}) {
    const Machine machine = File{.version = version}.read();
    EXPECT_DOUBLE_EQ(nvlink(machine), 200) << version;
    EXPECT_THAT(machine.remarks, ::testing::Not(::testing::Contains(HasSubstr("NVLink")))) << version;
  }
  EXPECT_DOUBLE_EQ(nvlink(File{.model = "Tesla P100-SXM2-16GB", .nvlinks = 40000}.read()), 40);
  EXPECT_DOUBLE_EQ(nvlink(File{.model = "Tesla V100-SXM2-16GB", .nvlinks = 50000}.read()), 50);
  EXPECT_DOUBLE_EQ(nvlink(File{.version = "2.12.2", .model = "NVIDIA B200", .nvlinks = 900000}.read()), 900);
  // Not a sum of what hwloc counts: somebody has put it right.
  EXPECT_DOUBLE_EQ(nvlink(File{.model = "NVIDIA RTX A6000", .nvlinks = 56250}.read()), 56.25);
}

TEST(HwlocNvml, TakesNoMoreLinksThanAGpuHas) {
  EXPECT_DOUBLE_EQ(nvlink(File{.version = "", .nvlinks = 600000}.read()), 300);
  EXPECT_DOUBLE_EQ(nvlink(File{.version = "2.9.1", .nvlinks = 300000}.read()), 300);
}

TEST(HwlocNvml, KnowsThatLinksOfWorkstationCardsAreSlower) {
  EXPECT_DOUBLE_EQ(nvlink(File{.version = "2.12.2", .model = "NVIDIA RTX A6000", .nvlinks = 100000}.read()),
                   56.25);
}

TEST(HwlocNvml, DoubtsLinksOfUnknownProducts) {
  const Machine machine = File{.model = "NVIDIA X999"}.read();
  EXPECT_DOUBLE_EQ(nvlink(machine), 0);
  EXPECT_THAT(machine.remarks, ::testing::Contains(HasSubstr("may have written twice")));
  // 25 GB/s is of no link that counted twice.
  EXPECT_DOUBLE_EQ(nvlink(File{.model = "NVIDIA X999", .nvlinks = 75000}.read()), 75);
  EXPECT_DOUBLE_EQ(nvlink(File{.version = "2.10.0", .model = "NVIDIA X999"}.read()), 200);
}

TEST(HwlocNvml, SaysWhyLinksAreMissing) {
  const auto missing = ::testing::Contains(HasSubstr("leaves NVLinks out"));
  EXPECT_THAT((File{.version = "2.11.2", .model = "NVIDIA H100 80GB HBM3", .nvlinks = 0}.read().remarks),
              missing);
  EXPECT_THAT((File{.version = "2.12.0", .model = "NVIDIA H100 80GB HBM3", .nvlinks = 0}.read().remarks),
              ::testing::Not(missing));
  EXPECT_THAT((File{.version = "2.11.2", .model = "NVIDIA L40", .nvlinks = 0}.read().remarks),
              ::testing::Not(missing));
}

TEST(HwlocNvml, TakesThePortsWordForPcie) {
  const Machine machine = File{}.read();
  EXPECT_NEAR(pcie(machine), 31.5077, 1e-3);
  EXPECT_THAT(machine.remarks,
              ::testing::Contains(HasSubstr("the PCIe link of gpu0, gpu1: the port's speed")));
  // A link of 8 lanes between a GPU and a port of 16: what the port has counts anyway.
  const Machine narrow = File{.model = "Tesla P100-SXM2-16GB", .port = 7.876923, .nvlinks = 0}.read();
  EXPECT_NEAR(pcie(narrow), 7.8769, 1e-3);
  // Without NVML both ends are the link's own, and the slower one counts.
  EXPECT_NEAR(pcie(File{.backend = "CUDA"}.read()), 15.7538, 1e-3);
}

TEST(HwlocNvml, DoubtsPcieOfGeneration3WhereNoPortIsThere) {
  const Machine machine = File{.port = 0}.read();
  EXPECT_DOUBLE_EQ(pcie(machine), 0);
  EXPECT_THAT(machine.remarks, ::testing::Contains(HasSubstr("no PCIe speed above generation 3")));
  EXPECT_NEAR(pcie(File{.model = "Tesla V100-SXM2-16GB", .port = 0, .nvlinks = 50000}.read()), 15.7538, 1e-3);
  EXPECT_NEAR(pcie(File{.version = "2.12.2", .port = 0}.read()), 15.7538, 1e-3);
}

TEST(HwlocNvml, DoubtsPcieOfIdleGpus) {
  for (const double speed : {4.0, 8.0, 2.0}) {
    const Machine machine = File{.version = "2.12.2", .gpu = speed, .port = speed}.read();
    EXPECT_DOUBLE_EQ(pcie(machine), 0) << speed;
    EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("gpu0, gpu1 was turned down"))) << speed;
  }
  // NVML's word shows that the link can do more, of any product.
  EXPECT_DOUBLE_EQ(pcie(File{.model = "Tesla T4", .port = 4, .nvlinks = 0}.read()), 0);
  const Machine old = File{.model = "Tesla K20m", .gpu = 8, .port = 8, .nvlinks = 0}.read();
  EXPECT_DOUBLE_EQ(pcie(old), 8);
  EXPECT_THAT(old.remarks, IsEmpty());
  // 16 lanes of generation 6 leave a number of quarters, too: 121 GB/s.
  EXPECT_DOUBLE_EQ(
      pcie(File{.version = "2.14.0", .model = "NVIDIA B300", .gpu = 121, .port = 121, .nvlinks = 900000}
               .read()),
      121);
}

}  // namespace
}  // namespace polyring
