// NCCL's topology XML: what its elements mean, and what is refused. Real machines' files are in
// real_files_test.cpp.
#include "topology/inventory/formats/nccl_xml.hpp"

#include "tests/topology/support.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"
#include "topology/inventory/formats/nccl_device.hpp"
#include "topology/inventory/formats/nccl_xml_keys.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_text.hpp"
#include "topology/inventory/formats/write_nccl_xml.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::links_of;
using ::testing::SizeIs;
using testing::usage_sentence;

constexpr const char* kGpu = "class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";

std::string system_of(const std::string& cpus, const char* attributes = "version=\"1\"") {
  return fmt::format("<system {}>{}</system>", attributes, cpus);
}

std::string cpu(const std::string& content, int numa = 0) {
  return fmt::format("<cpu numaid=\"{}\" arch=\"x86_64\">{}</cpu>", numa, content);
}

/// Two GPUs of compute capability 80 that say this of their NVLinks, each `{0}` for the other's address.
std::string two_gpus(const std::string& first, const std::string& second, const char* sm = "sm=\"80\"") {
  const char* gpu = "<pci busid=\"{}\" {}><gpu dev=\"{}\" {} rank=\"0\">{}</gpu></pci>";
  return system_of(cpu(fmt::format(fmt::runtime(gpu), "0000:07:00.0", kGpu, 0, sm, first) +
                       fmt::format(fmt::runtime(gpu), "0000:0F:00.0", kGpu, 1, sm, second)));
}

Machine parse(const std::string& xml) { return parse_nccl_xml(xml, "dir/topo.xml").host(0); }

std::string sentence_about(const std::string& xml) {
  const std::string sentence = usage_sentence([&] { parse(xml); });
  EXPECT_THAT(sentence, HasSubstr("topo.xml"));
  return sentence;
}

/// The sentence about two GPUs, when the first has this element.
std::string about_link(const std::string& element) { return sentence_about(two_gpus(element, "")); }
/// The sentence about a PCI device with these attributes.
std::string about_pci(const std::string& attributes) {
  return sentence_about(system_of(cpu("<pci " + attributes + "/>")));
}
std::string about_net(const std::string& attributes) {
  return sentence_about(system_of(cpu("<nic><net name=\"eth0\" " + attributes + "/></nic>")));
}

TEST(NcclXml, CountsNvlinksByTheGenerationOfTheGpu) {
  const char* there = "<nvlink target=\"0000:0f:00.0\" count=\"4\" tclass=\"0x030200\"/>";
  const char* back = "<nvlink target=\"0000:07:00.0\" count=\"4\" tclass=\"0x030200\"/>";
  const Machine machine = parse(two_gpus(there, back));
  EXPECT_THAT(links_of(machine), ElementsAre("gpu0-package0 pcie 31.5 GB/s", "gpu1-package0 pcie 31.5 GB/s",
                                             "gpu0-gpu1 nvlink 100 GB/s"));
  EXPECT_THAT(machine.remarks, IsEmpty());
  EXPECT_THAT(links_of(parse(two_gpus(there, back, "sm=\"60\""))).back(), HasSubstr("80.0 GB/s"));
  EXPECT_THAT(links_of(parse(two_gpus(there, "", "sm=\"90\""))).back(), HasSubstr("100 GB/s"));
  EXPECT_THAT(links_of(parse(two_gpus(there, back, "sm=\"100\""))).back(), HasSubstr("200 GB/s"));
  const Machine unknown = parse(two_gpus(there, back, ""));
  EXPECT_EQ(links_of(unknown).back(), "gpu0-gpu1 nvlink ?");
  EXPECT_EQ(unknown.links.back().count, 4);
  EXPECT_THAT(unknown.citations.back().source, HasSubstr("unknown"));
}

TEST(NcclXml, TakesTheLesserCountOfTwoThatDiffer) {
  const Machine machine =
      parse(two_gpus("<nvlink target=\"0000:0f:00.0\" count=\"2\" tclass=\"0x030000\"/>",
                     "<nvlink target=\"0000:07:00.0\" count=\"3\" tclass=\"0x030000\"/>"));
  EXPECT_EQ(links_of(machine).back(), "gpu0-gpu1 nvlink 50.0 GB/s");
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("the lesser is taken")));
  const Machine unknown =
      parse(two_gpus("<nvlink target=\"0000:0f:00.0\" count=\"3\" tclass=\"0x030000\"/>",
                     "<nvlink target=\"0000:07:00.0\" count=\"2\" tclass=\"0x030000\"/>", ""));
  EXPECT_EQ(unknown.links.back().count, 2);
  EXPECT_THAT(unknown.remarks, ElementsAre(HasSubstr("gpu0 counts 3 x ? to gpu1, which counts 2 x ? back")));
}

TEST(NcclXml, TakesAllNvswitchesTogether) {
  const std::string six =
      "<nvlink target=\"0000:c4:00.0\" count=\"2\" tclass=\"0x068000\"/>"
      "<nvlink target=\"fffffff:ffff:ff\" count=\"10\"/>";
  const Machine machine = parse(two_gpus(six, six));
  EXPECT_EQ(machine.nvswitches, 1);
  EXPECT_EQ(links_of(machine).back(), "gpu1-nvswitch0 nvlink 300 GB/s");
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->type, PathType::nvl);
}

TEST(NcclXml, SaysWhichGpuHasLostNvlinks) {
  const auto gpu = [](int dev, int count) {
    return fmt::format(
        "<pci busid=\"0000:{:02x}:00.0\" {}><gpu dev=\"{}\" sm=\"90\"><nvlink target=\"0000:c4:00.0\" "
        "count=\"{}\" tclass=\"0x068000\"/></gpu></pci>",
        16 + dev, kGpu, dev, count);
  };
  EXPECT_THAT(parse(system_of(cpu(gpu(0, 18) + gpu(1, 18) + gpu(2, 16)))).remarks,
              ElementsAre("2 of 3 GPUs have 18 NVLinks, but gpu2 with 16: see nvidia-smi nvlink --status"));
  EXPECT_THAT(parse(system_of(cpu(gpu(0, 18) + gpu(1, 18) + gpu(2, 18)))).remarks, IsEmpty());
}

TEST(NcclXml, LinksGpusToTheirCpu) {
  const Machine machine = parse(two_gpus("<nvlink target=\"0004:04:00.0\" count=\"3\" tclass=\"0x068001\"/>",
                                         "<c2c bw=\"44712\" count=\"10\"/>", "sm=\"70\""));
  EXPECT_THAT(links_of(machine), ElementsAre("gpu0-package0 pcie 31.5 GB/s", "gpu1-package0 pcie 31.5 GB/s",
                                             "gpu0-package0 nvlink 75.0 GB/s", "gpu1-package0 c2c 447 GB/s"));
}

TEST(NcclXml, LeavesOutNvlinksToNowhere) {
  const Machine machine =
      parse(two_gpus("<nvlink target=\"0000:07:00.0\" count=\"12\" tclass=\"0x030200\"/>",
                     "<nvlink target=\"0000:aa:00.0\" count=\"12\" tclass=\"0x030200\"/>"));
  EXPECT_THAT(links_of(machine), SizeIs(2));
  EXPECT_THAT(machine.remarks,
              ElementsAre(HasSubstr("gpu0: 12 nvlink to 0000:07:00.0, which is the GPU itself"),
                          HasSubstr("which is no GPU of this file")));
}

TEST(NcclXml, ReadsXgmiByArchitecture) {
  const auto with = [](const char* gcn) {
    const std::string text = two_gpus("<xgmi target=\"0000:0f:00.0\" count=\"1\" tclass=\"0x038000\"/>", "",
                                      fmt::format("sm=\"304\" gcn=\"{}\"", gcn).c_str());
    return links_of(parse(text)).back();
  };
  EXPECT_EQ(with("906"), "gpu0-gpu1 xgmi 46.0 GB/s");
  EXPECT_EQ(with("gfx908"), "gpu0-gpu1 xgmi 46.0 GB/s");
  EXPECT_EQ(with("910"), "gpu0-gpu1 xgmi 50.0 GB/s");
  EXPECT_EQ(with("gfx90a:sramecc+:xnack-"), "gpu0-gpu1 xgmi 50.0 GB/s");
  EXPECT_EQ(with("gfx942"), "gpu0-gpu1 xgmi 64.0 GB/s");
  EXPECT_EQ(with("gfx1"), "gpu0-gpu1 xgmi ?");
}

TEST(NcclXml, DoesNotBelieveSpeedsThatNoPortHas) {
  const auto nic = [](const char* speed) {
    return parse(
        system_of(cpu(fmt::format("<pci busid=\"0000:81:00.0\" class=\"0x020000\"><nic><net name=\"cxi0\" "
                                  "speed=\"{}\" port=\"1\"/></nic></pci>",
                                  speed))));
  };
  for (const char* speed : {"200000000", "100000000", "3200001"}) {
    const Machine machine = nic(speed);
    EXPECT_TRUE(machine.nics.at(0).up());
    EXPECT_FALSE(machine.nics[0].bandwidth().known());
    EXPECT_THAT(machine.remarks, ElementsAre(AllOf(HasSubstr(fmt::format("cxi0 port 1 ({}): ", speed)),
                                                   HasSubstr("Mbit/s"), HasSubstr("count as unknown"))));
  }
  EXPECT_DOUBLE_EQ(nic("3200000").nics.at(0).bandwidth().gigabytes_per_second(), 400);
  EXPECT_THAT(nic("3200000").remarks, IsEmpty());
}

TEST(NcclXml, SaysThatAGpuHasSeveralParts) {
  const Machine machine = parse(system_of(cpu(fmt::format(
      "<pci busid=\"0000:18:00.0\" {}><gpu dev=\"0\" sm=\"90\"/><gpu dev=\"0\" sm=\"90\"/></pci>", kGpu))));
  EXPECT_THAT(machine.gpus, SizeIs(1));
  EXPECT_THAT(machine.remarks.back(), HasSubstr("0000:18:00.0: the file has several <gpu> below"));
}

TEST(NcclXml, OrdersGpusByNumberElseByAddress) {
  const auto gpu = [](const char* address, const char* inner) {
    return fmt::format("<pci busid=\"{}\" {}>{}</pci>", address, kGpu, inner);
  };
  const auto addresses = [](const std::string& content) {
    std::vector<std::string> found;
    for (const Gpu& found_gpu : parse(system_of(cpu(content))).gpus) found.push_back(found_gpu.pci);
    return found;
  };
  EXPECT_THAT(addresses(gpu("0000:07:00.0", "<gpu dev=\"1\"/>") + gpu("0000:0f:00.0", "<gpu dev=\"0\"/>")),
              ElementsAre("0000:0f:00.0", "0000:07:00.0"));
  EXPECT_THAT(addresses(gpu("00010000:00:00.0", "") + gpu("000f:00:00.0", "") + gpu("00000003:00:00.0", "")),
              ElementsAre("0003:00:00.0", "000f:00:00.0", "10000:00:00.0"));
}

TEST(NcclXml, NestsSwitchesAndSkipsWhatLeadsNowhere) {
  const std::string bridge = "class=\"0x060400\" link_speed=\"8 GT/s\" link_width=\"8\"";
  const Machine machine = parse(system_of(cpu(
      "<pci busid=\"0000:01:00.0\" " + bridge + "><pci busid=\"0000:02:00.0\" " + bridge +
      "><pci busid=\"0000:03:00.0\" " + kGpu +
      "/></pci><pci busid=\"0000:04:00.0\" class=\"0x020700\" link_speed=\"\" link_width=\"\"/></pci>" +
      "<pci busid=\"0000:05:00.0\" " + bridge + "><pci busid=\"0000:06:00.0\" class=\"0x010802\"/></pci>" +
      "<pci busid=\"0000:08:00.0\" class=\"0x030000\" vendor=\"0x1a03\"/>")));
  EXPECT_THAT(links_of(machine),
              ElementsAre("switch0-package0 pcie 7.88 GB/s", "switch1-switch0 pcie 7.88 GB/s",
                          "gpu0-switch1 pcie 31.5 GB/s", "nic@0000:04:00.0-switch0 pcie ?"));
  EXPECT_EQ(machine.nics[0].kind, NicKind::infiniband);
  EXPECT_THAT(machine.nics[0].ports, IsEmpty());
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("PCI identity, class or generation only")));
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::nic, 0})->type, PathType::pxb);
}

/// AWS's skeleton for p5 has `<gpu sm="90">` and no NVLinks, which a card for a PCIe slot may have in truth;
/// that for p4d has the GPUs' PCI identity alone.
TEST(NcclXml, KnowsWhereNvlinksMayBeMissing) {
  const auto known = [](const std::string& identity, const std::string& gpu) {
    const auto pci = [&](int bus) {
      return fmt::format("<pci busid=\"0000:{:02x}:00.0\" {} {}>{}</pci>", bus, kGpu, identity, gpu);
    };
    return parse(system_of(cpu(pci(1) + pci(2)))).gpu_links_known;
  };
  EXPECT_FALSE(known("", ""));
  EXPECT_FALSE(known("", "<gpu sm=\"90\"/>"));
  EXPECT_TRUE(known("", "<gpu sm=\"75\"/>"));
  EXPECT_TRUE(known("vendor=\"0x10de\" device=\"0x2331\"", "<gpu sm=\"90\"/>"));
  EXPECT_FALSE(known("vendor=\"0x10de\" device=\"0x20b0\"", ""));
  EXPECT_TRUE(parse(two_gpus("<nvlink target=\"0000:0f:00.0\" count=\"2\" tclass=\"0x030200\"/>",
                             "<nvlink target=\"0000:07:00.0\" count=\"2\" tclass=\"0x030200\"/>"))
                  .gpu_links_known);
}

/// Two levels of bridges with a GPU under each lower one: `upper` and `lower` are their identities.
Machine two_levels(const std::string& upper, const std::string& lower) {
  const std::string speed = " class=\"0x060400\" link_speed=\"32 GT/s\" link_width=\"16\" ";
  const auto below = [&](int bus) {
    return fmt::format("<pci busid=\"0000:{:02x}:00.0\"{}{}><pci busid=\"0000:{:02x}:00.0\" {}/></pci>", bus,
                       speed, lower, bus + 1, kGpu);
  };
  return parse(system_of(
      cpu(fmt::format("<pci busid=\"0000:01:00.0\"{}{}>{}{}</pci>", speed, upper, below(2), below(4)))));
}

TEST(NcclXml, TakesTwoLevelsOfABroadcomSwitchForOne) {
  const auto type = [](const std::string& upper, const std::string& lower) {
    return find_path(two_levels(upper, lower), {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->type;
  };
  const auto identity = [](const char* device, const char* subsystem, const char* vendor = "0x1000") {
    return fmt::format("vendor=\"0x1000\" device=\"{}\" subsystem_vendor=\"{}\" subsystem_device=\"{}\"",
                       device, vendor, subsystem);
  };
  const std::string fourth = identity("0xc010", "0xa096");
  const std::string fifth = identity("0xc030", "0x0003");
  const std::string fifth_lower = identity("0xc030", "0x1003");
  EXPECT_EQ(type(fourth, fourth), PathType::pix);
  EXPECT_EQ(type(fifth, fifth_lower), PathType::pix);
  EXPECT_EQ(two_levels(fifth, fifth_lower).switches.size(), 1u);
  // The same chip of a server's maker, in another mode, or of two generations, is what it shows.
  const std::string of_maker = identity("0xc030", "0x0003", "0x15d9");
  EXPECT_EQ(type(of_maker, identity("0xc030", "0x1003", "0x15d9")), PathType::pxb);
  EXPECT_EQ(type(fifth, fifth), PathType::pxb);
  EXPECT_EQ(type(fifth, fourth), PathType::pxb);
  EXPECT_EQ(two_levels(fifth, fifth).switches.size(), 3u);
}

TEST(NcclXml, DoesNotKnowWhatClass0280RunsOver) {
  const Machine machine = parse(system_of(cpu(
      "<pci busid=\"0000:03:00.0\" class=\"0x028000\"><nic><net name=\"mlx4_0\" dev=\"0\" speed=\"56000\" "
      "port=\"1\"/></nic></pci>")));
  ASSERT_EQ(machine.nics.size(), 1u);
  EXPECT_EQ(machine.nics[0].kind, NicKind::unknown);
  EXPECT_NEAR(machine.nics[0].bandwidth().gigabytes_per_second(), 7 * 64.0 / 66, 1e-3);
  EXPECT_THAT(write_nccl_xml(cluster_of(machine, 1)), HasSubstr("class=\"0x028000\""));
  EXPECT_THAT(probe_text(cluster_of(machine, 1)), HasSubstr("link layer ?"));
  EXPECT_EQ(parse_probe_json(probe_json(cluster_of(machine, 1)), "x.json").host(0).nics[0].kind,
            NicKind::unknown);
}

TEST(NcclXml, LeavesOutWhatTheFileDoesNotName) {
  // As AWS' file for g5, which has bus addresses alone.
  const Machine machine =
      parse(system_of(cpu("<pci busid=\"0000:00:16.0\"/><pci busid=\"0000:00:17.0\"/>"
                          "<pci busid=\"0000:00:18.0\"><gpu dev=\"0\" sm=\"86\"/></pci>"
                          "<pci busid=\"0000:00:19.0\"><pci busid=\"0000:01:00.0\"><nic><net "
                          "name=\"eth0\"/></nic></pci></pci>")));
  EXPECT_THAT(links_of(machine),
              ElementsAre("switch0-package0 pcie ?", "gpu0-package0 pcie ?", "eth0-switch0 pcie ?"));
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("2 PCI devices (0000:00:16.0 first) are left out")));
}

TEST(NcclXml, ReadsPorts) {
  const Machine machine = parse(system_of(
      cpu("<pci busid=\"0000:61:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x101b\" "
          "link_speed=\"16.0 GT/s "
          "PCIe\" link_width=\"16\"><nic>"
          "<net name=\"mlx5_4\" dev=\"4\" speed=\"200000\" port=\"1\" guid=\"0xf2bb2700034b6b50\"/>"
          "<net name=\"mlx5_4\" dev=\"5\" speed=\"100000\" port=\"2\"/>"
          "<net name=\"mlx5_4\" dev=\"4\" speed=\"200000\" port=\"1\" gdr=\"1\"/>"
          "<net name=\"mlx5_3\" dev=\"3\" speed=\"40000\" port=\"1\"/>"
          "</nic></pci><nic><net name=\"eth0\" dev=\"6\" speed=\"-1\" port=\"0\" guid=\"0x0\"/></nic>")));
  ASSERT_THAT(machine.nics, SizeIs(3));
  EXPECT_EQ(machine.nics[0].name, "mlx5_3");
  EXPECT_DOUBLE_EQ(machine.nics[0].bandwidth().value, 4e9);  // QDR: 8 of 10 bits
  EXPECT_EQ(machine.nics[1].name, "mlx5_4");
  EXPECT_EQ(machine.nics[1].model, "device 15b3:101b");
  EXPECT_EQ(machine.nics[1].system_guid, "0x506b4b030027bbf2");  // 50:6b:4b is Mellanox's
  ASSERT_THAT(machine.nics[1].ports, SizeIs(2));
  EXPECT_EQ(machine.nics[1].ports[1].number, 2);
  EXPECT_NEAR(machine.nics[1].bandwidth().gigabytes_per_second(), 36.36, 0.01);  // 300 Gb/s, 64 of 66 bits
  EXPECT_EQ(machine.nics[2].kind, NicKind::ethernet);
  EXPECT_TRUE(machine.nics[2].up());
  EXPECT_FALSE(machine.nics[2].bandwidth().known());
  EXPECT_EQ(machine.nics[2].system_guid, "");
  EXPECT_THAT(machine.remarks,
              Contains(HasSubstr("mlx5_3: 40 Gb/s are 4.00 GB/s of QDR and 4.85 GB/s of FDR10 "
                                 "InfiniBand, or 5.00 GB/s of Ethernet")));
}

TEST(NcclXml, ClaimsNoMoreOfAPortThanItsSpeedSays) {
  const auto gigabytes = [](int speed, NicKind kind) {
    return nccl_xml::port_bandwidth(speed, kind).gigabytes_per_second();
  };
  EXPECT_NEAR(gigabytes(25'000, NicKind::infiniband), 3.0303, 1e-4);  // one lane of EDR
  EXPECT_NEAR(gigabytes(14'000, NicKind::infiniband), 1.6970, 1e-4);  // one of FDR
  EXPECT_DOUBLE_EQ(gigabytes(20'000, NicKind::infiniband), 2);        // four of DDR
  EXPECT_DOUBLE_EQ(gigabytes(40'000, NicKind::infiniband), 4);
  EXPECT_DOUBLE_EQ(gigabytes(40'000, NicKind::unknown), 4);
  EXPECT_DOUBLE_EQ(gigabytes(40'000, NicKind::ethernet), 5);
  EXPECT_DOUBLE_EQ(gigabytes(25'000, NicKind::ethernet), 3.125);
  EXPECT_NEAR(gigabytes(25'000, NicKind::unknown), 3.0303, 1e-4);  // it may be Ethernet
  EXPECT_FALSE(nccl_xml::is_ambiguous(25'000, NicKind::unknown));
  EXPECT_FALSE(nccl_xml::is_ambiguous(40'000, NicKind::ethernet));
}

TEST(NcclXml, CountsNoFusedNicBesideItsParts) {
  const auto names = [](const char* nets) {
    std::vector<std::string> found;
    for (const Nic& nic : parse(system_of(cpu(fmt::format("<nic>{}</nic>", nets)))).nics)
      found.push_back(nic.name);
    return found;
  };
  EXPECT_THAT(names("<net name=\"a\" dev=\"0\" net=\"0\"/><net name=\"b\" dev=\"1\" net=\"0\"/>"
                    "<net name=\"a+b\" dev=\"2\"/>"),
              ElementsAre("a", "b"));
  EXPECT_THAT(names("<net name=\"a+b\" dev=\"2\"/>"), ElementsAre("a+b"));
}

TEST(NcclXml, ReadsAHostForEachHash) {
  const auto host = [](const char* hash) {
    return fmt::format("<cpu host_hash=\"{}\" numaid=\"0\"><pci busid=\"0000:07:00.0\" {}/></cpu>", hash,
                       kGpu);
  };
  const Cluster cluster = parse_nccl_xml(
      system_of(host("0x1") + host("0x2") + host("0x1").replace(host("0x1").find(":07:"), 4, ":08:"),
                "version=\"1\" name=\"rack\""),
      "topo.xml");
  ASSERT_THAT(cluster.groups, SizeIs(2));
  EXPECT_EQ(cluster.name, "rack");
  EXPECT_EQ(cluster.host(0).name, "rack-0");
  EXPECT_THAT(cluster.host(0).gpus, SizeIs(2));
  EXPECT_THAT(cluster.host(0).packages, SizeIs(2));
  EXPECT_THAT(cluster.host(1).gpus, SizeIs(1));
}

TEST(NcclXml, RefusesWhatIsNotNccls) {
  EXPECT_THAT(sentence_about("<system version=\"1\"><cpu"), HasSubstr("not well-formed XML or is truncated"));
  EXPECT_THAT(sentence_about("<system version=\"1\"></system"), HasSubstr("truncated"));
  EXPECT_THAT(sentence_about("<graphs version=\"1\"></graphs>"), HasSubstr("<system>"));
  EXPECT_THAT(sentence_about("<system version=\"1\"></system>"), HasSubstr("no <cpu>"));
  EXPECT_THAT(sentence_about(system_of(cpu(""), "")), HasSubstr("version of the <system>"));
  EXPECT_THAT(sentence_about(system_of(cpu(""), "version=\"3\"")), HasSubstr("version 3"));
  EXPECT_THAT(sentence_about(system_of(cpu(""), "version=\"1e9\"")), HasSubstr("'1e9'"));
}

TEST(NcclXml, RefusesValuesThatMakeNoSense) {
  for (const char* count : {"-1", "1025", "99999999999999999999", "NaN", "1.5", "two", "--1", "0x", "1 "}) {
    EXPECT_THAT(
        about_link(fmt::format("<nvlink target=\"0000:0f:00.0\" count=\"{}\" tclass=\"0x03\"/>", count)),
        HasSubstr("count of the <nvlink>"))
        << count;
  }
  EXPECT_THAT(about_link("<nvlink target=\"0000:0f:00.0\" tclass=\"0x03\"/>"), HasSubstr("is missing"));
  EXPECT_THAT(about_link("<c2c bw=\"-44712\" count=\"10\"/>"), HasSubstr("bw of the <c2c>"));
  for (const char* speed : {"nan GT/s", "-16 GT/s", "inf GT/s", "1e9 GT/s", "16", "fast", "99999 GT/s"}) {
    EXPECT_THAT(about_pci(fmt::format(
                    "busid=\"0000:07:00.0\" class=\"0x0302\" link_speed=\"{}\" link_width=\"16\"", speed)),
                HasSubstr("link_speed"))
        << speed;
  }
  for (const char* width : {"-16", "NaN", "1000000"}) {
    EXPECT_THAT(about_pci(fmt::format("busid=\"0000:07:00.0\" class=\"0x0302\" link_width=\"{}\"", width)),
                HasSubstr("link_width"));
  }
  for (const char* address :
       {"", "07:00.0", "0000:07:00", "0000:07:00.0.0", "gggg:07:00.0", "0000000000:07:00.0"}) {
    EXPECT_THAT(about_pci(fmt::format("busid=\"{}\" class=\"0x0302\"", address)), HasSubstr("busid"))
        << address;
  }
  EXPECT_THAT(about_pci("busid=\"0000:07:00.0\" class=\"VGA\""), HasSubstr("class"));
  for (const char* speed : {"-2", "NaN", "1e5", "100000000000"}) {
    EXPECT_THAT(about_net(fmt::format("speed=\"{}\"", speed)), HasSubstr("speed of the <net>")) << speed;
  }
  EXPECT_THAT(about_net("port=\"-1\""), HasSubstr("port"));
  EXPECT_THAT(about_net("guid=\"0xzz\""), HasSubstr("guid"));
  EXPECT_THAT(about_net("polyring_GBps=\"nan\""), HasSubstr("polyring_GBps"));
  EXPECT_THAT(sentence_about(two_gpus("", "", "sm=\"-80\"")), HasSubstr("sm of the <gpu>"));
  EXPECT_THAT(sentence_about(system_of("<cpu numaid=\"-2\"/>")), HasSubstr("numaid"));
}

TEST(NcclXml, NamesTheValueInOneLine) {
  EXPECT_THAT(about_net("speed=\"&#10;&#27;" + std::string(100'000, 'x') + "\""),
              AllOf(HasSubstr("xxx"),
                    ::testing::ResultOf([](const std::string& s) { return s.size() < 400; }, true)));
}

TEST(NcclXml, ReplacesControlCharactersInNames) {
  const Machine machine = parse(system_of(cpu("<nic><net name=\"a&#10;&#27;[2Jb\"/></nic>")));
  EXPECT_EQ(machine.nics[0].name, "a␊␛[2Jb");
}

TEST(NcclXml, RefusesTheSameGpuTwice) {
  const std::string gpu = fmt::format("<pci busid=\"0000:07:00.0\" {}/>", kGpu);
  EXPECT_THAT(sentence_about(system_of(cpu(gpu + gpu))), HasSubstr("one GPU only"));
}

TEST(NcclXml, RefusesEntitiesDepthAndCrowds) {
  const std::string bomb =
      "<!DOCTYPE system [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>" + system_of(cpu("&b;"));
  EXPECT_THAT(sentence_about(bomb), HasSubstr("entities"));
  std::string deep;
  std::string end;
  for (int i = 0; i < 100'000; ++i) {
    deep += "<a>";
    end += "</a>";
  }
  EXPECT_THAT(sentence_about(system_of(deep + end)), HasSubstr("deep"));
  EXPECT_THAT(sentence_about(std::string(5u << 20, ' ') + system_of(cpu(""))),
              HasSubstr("more than the 4MiB"));
  const auto many = [](int count, const char* element) {
    std::string elements;
    for (int i = 0; i < count; ++i) {
      elements += fmt::format(fmt::runtime(element), fmt::format("{:04x}:07:00.0", i));
    }
    return elements;
  };
  EXPECT_THAT(sentence_about(system_of(cpu(many(65, "<pci busid=\"{}\" class=\"0x03\"/>")))),
              HasSubstr("64 GPUs"));
  EXPECT_THAT(sentence_about(system_of(cpu(many(20'000, "<pci busid=\"{}\" class=\"0x02\"/>")))),
              HasSubstr("128 NICs"));
  EXPECT_THAT(sentence_about(system_of(many(65, "<cpu numaid=\"0\" arch=\"{}\"/>"))), HasSubstr("64 CPUs"));
  EXPECT_THAT(sentence_about(system_of(many(1025, "<cpu host_hash=\"{}\"/>"))), HasSubstr("1025 hosts"));
}

TEST(NcclXml, RefusesEveryTruncation) {
  const std::string text = two_gpus("<nvlink target=\"0000:0f:00.0\" count=\"4\" tclass=\"0x030200\"/>", "");
  for (std::size_t length = 1; length < text.size(); ++length) sentence_about(text.substr(0, length));
}

TEST(NcclDevice, KeepsWhatTheFileSays) {
  for (const char* model :
       {"device 10de:20b5, sm 80", "device 1002:74a1, gcn gfx942", "gcn 908", "sm 70", "device 15b3:1021"}) {
    EXPECT_EQ(model_of(identity_of(model)), model);
  }
  EXPECT_EQ(identity_of("Tesla P100-SXM2-16GB").compute_capability, 60);
  EXPECT_EQ(identity_of("NVIDIA H100 80GB HBM3").compute_capability, 90);
  EXPECT_EQ(identity_of("").compute_capability, 0);
  EXPECT_EQ(nccl_xml::swapped(0xf2bb2700034b6b50), 0x506b4b030027bbf2u);
}

}  // namespace
}  // namespace polyring
