// What somebody should look at on hosts that NCCL's topology XML describes.
#include "tests/topology/support.hpp"
#include "topology/inventory/formats/nccl_xml.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string gpu(int number, const std::string& device, const std::string& links = "") {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"{}\" link_speed=\"32.0 "
      "GT/s "
      "PCIe\" link_width=\"16\"><gpu dev=\"{}\" sm=\"90\">{}</gpu></pci>",
      16 + number, device, number, links);
}

Cluster parse(const std::string& cpus) {
  return parse_nccl_xml(fmt::format("<system version=\"1\">{}</system>", cpus), "topo.xml");
}

Machine host(const std::string& content) {
  return parse("<cpu numaid=\"0\" arch=\"x86_64\">" + content + "</cpu>").host(0);
}

TEST(NcclRemarks, NamesPortsThatAreFasterThanTheirPcieLink) {
  const auto adapter = [](int lanes) {
    return host(fmt::format(
        "<pci busid=\"0000:41:00.0\" class=\"0x020700\" link_speed=\"8.0 GT/s PCIe\" link_width=\"{}\"><nic>"
        "<net name=\"mlx5_0\" speed=\"100000\" port=\"1\"/><net name=\"mlx5_1\" speed=\"100000\" "
        "port=\"1\"/></nic></pci>",
        lanes));
  };
  EXPECT_THAT(
      adapter(4).remarks,
      ElementsAre(AllOf(HasSubstr("mlx5_0 + mlx5_1 has ports of 24.2 GB/s behind a PCIe link of 3.94 GB/s"),
                        HasSubstr("which they share"))));
  EXPECT_THAT(adapter(32).remarks, IsEmpty());
}

TEST(NcclRemarks, SaysThatAllNvlinksOfModulesAreMissing) {
  constexpr const char* kH200 = "0x2335";
  const Machine machine = host(gpu(0, kH200) + gpu(1, kH200));
  EXPECT_FALSE(machine.gpu_links_known);
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("the file has none: they were inactive")));
  constexpr const char* kL40s = "0x26b9";
  EXPECT_TRUE(host(gpu(0, kL40s) + gpu(1, kL40s)).gpu_links_known);
  EXPECT_THAT(host(gpu(0, kL40s) + gpu(1, kL40s)).remarks, IsEmpty());
  const std::string links = "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>";
  EXPECT_THAT(host(gpu(0, kH200, links) + gpu(1, kH200, links)).remarks, IsEmpty());
}

TEST(NcclRemarks, SaysThatNvlinksBetweenHostsAreNotModelled) {
  const std::string links = "<nvlink target=\"fffffff:ffff:ff\" count=\"18\" tclass=\"0x068000\"/>";
  const std::string superchip = links + "<c2c bw=\"44712\" count=\"10\"/>";
  const auto of_rack = HasSubstr("until hosts_per_nvlink_domain");
  EXPECT_THAT(host(gpu(0, "0x31c2", superchip) + gpu(1, "0x31c2", superchip)).remarks, ElementsAre(of_rack));
  const auto cpu = [&](int hash) {
    return fmt::format("<cpu host_hash=\"0x{}\" numaid=\"0\" arch=\"arm64\">{}</cpu>", hash,
                       gpu(0, "0x2335", links) + gpu(1, "0x2335", links));
  };
  EXPECT_THAT(parse(cpu(1)).host(0).remarks, IsEmpty());
  EXPECT_THAT(parse(cpu(1) + cpu(2)).host(0).remarks, Contains(of_rack));
}

}  // namespace
}  // namespace polyring
