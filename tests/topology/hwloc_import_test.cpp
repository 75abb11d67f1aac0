// Import of hwloc XML from our own small files, and of files that are none.
#include "base/files.hpp"
#include "tests/folder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::links_of;
using testing::TemporaryFolder;
using testing::usage_sentence;

std::filesystem::path fixture(const char* name) { return tests_folder() / "topology/fixtures" / name; }

TEST(HwlocImport, ReadsPackages) {
  const Machine machine = import_hwloc_xml(fixture("two_sockets.v2.xml"));
  EXPECT_EQ(machine.name, "twosockets");
  EXPECT_EQ(machine.model, "Example Server 2");
  ASSERT_EQ(machine.packages.size(), 2u);
  EXPECT_EQ(machine.packages[1].model, "Example CPU");
  EXPECT_EQ(machine.packages[1].cores, 1);
  EXPECT_EQ(machine.packages[1].memory.value, std::uint64_t{64} << 30);
  EXPECT_THAT(machine.packages[1].numa_nodes, ElementsAre(1));
  const CpuIdentity& cpu = machine.packages[1].cpu;
  EXPECT_EQ(std::tuple(cpu.architecture, cpu.vendor, cpu.family, cpu.model),
            std::tuple("x86_64", "GenuineIntel", 6, 79));
  EXPECT_EQ(machine.packages[0].cpu.vendor, "");
  EXPECT_EQ(machine.packages[0].cpu.family, -1);
}

TEST(HwlocImport, CountsEachGpuOnceAndNoManagementVga) {
  const Machine machine = import_hwloc_xml(fixture("two_sockets.v2.xml"));
  ASSERT_EQ(machine.gpus.size(), 3u);
  EXPECT_EQ(machine.gpus[0].pci, "0000:03:00.0");
  EXPECT_EQ(machine.gpus[0].model, "Example GPU");
  EXPECT_EQ(machine.gpus[0].memory.value, std::uint64_t{16} << 30);
  EXPECT_EQ(machine.gpus[0].numa, 0);
  EXPECT_EQ(machine.gpus[2].model, "Example AMD GPU");
  EXPECT_EQ(machine.gpus[2].numa, 1);
}

TEST(HwlocImport, TakesAnAdapterOnBothSocketsForOneNic) {
  const Machine machine = import_hwloc_xml(fixture("two_sockets.v2.xml"));
  ASSERT_EQ(machine.nics.size(), 3u);
  const Nic& adapter = machine.nics[0];
  EXPECT_EQ(adapter.name, "mlx5_0");
  EXPECT_EQ(adapter.model, "Example NIC");
  EXPECT_EQ(adapter.kind, NicKind::infiniband);
  EXPECT_EQ(adapter.numa, -1);
  ASSERT_EQ(adapter.ports.size(), 2u);
  EXPECT_TRUE(adapter.ports[0].up);
  EXPECT_FALSE(adapter.ports[1].up);
  EXPECT_FALSE(adapter.bandwidth().known());
}

TEST(HwlocImport, LeavesPortsOfEthernetUnknown) {
  const Machine machine = import_hwloc_xml(fixture("two_sockets.v2.xml"));
  EXPECT_EQ(machine.nics[1].name, "eth0");
  EXPECT_EQ(machine.nics[1].kind, NicKind::ethernet);
  EXPECT_TRUE(machine.nics[1].ports.empty());
  EXPECT_EQ(machine.nics[2].name, "nic@0000:82:00.1");
}

TEST(HwlocImport, FindsSwitchesAndTakesTheSlowerEndOfALink) {
  EXPECT_THAT(links_of(import_hwloc_xml(fixture("two_sockets.v2.xml"))),
              ElementsAre("package0-package1 socket-bus ?", "switch0-package0 pcie 15.8 GB/s",
                          "gpu0-switch0 pcie 15.8 GB/s", "gpu1-switch0 pcie 7.88 GB/s",
                          "mlx5_0-switch0 pcie ?", "mlx5_0-package1 pcie 7.88 GB/s",
                          "eth0-package1 pcie 2.00 GB/s", "nic@0000:82:00.1-package1 pcie 2.00 GB/s",
                          "gpu2-package1 pcie 15.8 GB/s", "gpu0-gpu1 nvlink 50.0 GB/s"));
}

TEST(HwlocImport, FindsASwitchUnderASwitch) {
  const Machine machine = import_hwloc_xml(fixture("cascaded_switches.v2.xml"));
  EXPECT_THAT(links_of(machine),
              ElementsAre("switch0-package0 pcie 15.8 GB/s", "gpu0-switch0 pcie 15.8 GB/s",
                          "switch1-switch0 pcie 7.88 GB/s", "gpu1-switch1 pcie 15.8 GB/s"));
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->type, PathType::pxb);
}

// The rule is that of NCCL's files, with whose test its other cases are.
TEST(HwlocImport, TakesTwoLevelsOfABroadcomSwitchForOne) {
  const Machine machine = import_hwloc_xml(fixture("broadcom_levels.v2.xml"));
  EXPECT_THAT(links_of(machine), ElementsAre("switch0-package0 pcie 63.0 GB/s", "gpu0-switch0 pcie 63.0 GB/s",
                                             "mlx5_0-switch0 pcie 63.0 GB/s", "gpu1-switch0 pcie 63.0 GB/s",
                                             "mlx5_1-switch0 pcie 63.0 GB/s"));
  const auto type = [](const Machine& of, DeviceId to) {
    return find_path(of, {DeviceKind::gpu, 0}, to)->type;
  };
  EXPECT_EQ(type(machine, {DeviceKind::gpu, 1}), PathType::pix);
  EXPECT_EQ(type(machine, {DeviceKind::nic, 1}), PathType::pix);
  // As hwloc writes it where libpciaccess tells it no subsystem of bridges: then they are what they show.
  std::string xml = read_text_file(fixture("broadcom_levels.v2.xml"));
  for (const char* subsystem : {"[1000:0003]", "[1000:1003]"}) {
    for (auto at = xml.find(subsystem); at != std::string::npos; at = xml.find(subsystem))
      xml.replace(at, std::string_view(subsystem).size(), "[0000:0000]");
  }
  const Machine shown = parse_hwloc_xml(xml, "levels.xml");
  EXPECT_EQ(shown.switches.size(), 3u);
  EXPECT_EQ(type(shown, {DeviceKind::gpu, 1}), PathType::pxb);
}

TEST(HwlocImport, SaysOfWhichDevicesThePackageIsUnknown) {
  const Machine machine = import_hwloc_xml(fixture("unplaced.v2.xml"));
  ASSERT_EQ(machine.gpus.size(), 2u);
  EXPECT_EQ(machine.gpus[0].pci, "0000:00:05.0");
  EXPECT_FALSE(machine.gpus[0].package_known);
  EXPECT_TRUE(machine.gpus[1].package_known);
  EXPECT_TRUE(machine.nics[0].package_known);
  EXPECT_THAT(machine.remarks, Contains(HasSubstr("nothing tells which package gpu0 is near")));
  const auto type = [&](DeviceId from, DeviceId to) { return find_path(machine, from, to)->type; };
  EXPECT_EQ(type({DeviceKind::gpu, 0}, {DeviceKind::nic, 0}), PathType::unknown);
  EXPECT_EQ(type({DeviceKind::nic, 0}, {DeviceKind::gpu, 0}), PathType::unknown);
  EXPECT_EQ(type({DeviceKind::gpu, 1}, {DeviceKind::nic, 0}), PathType::phb);
}

TEST(HwlocImport, TakesNvswitchesTogether) {
  const Machine machine = import_hwloc_xml(fixture("nvswitch.v2.xml"));
  EXPECT_EQ(machine.nvswitches, 1);
  const auto path = find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1});
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->type, PathType::nvl);
  EXPECT_DOUBLE_EQ(path->bandwidth.value, 50e9);  // 25 GB/s to each of two
}

TEST(HwlocImport, LeavesTheSpeedOpenThatAnIdleGpuTurnedDown) {
  std::string xml = read_text_file(fixture("unplaced.v2.xml"));
  const auto gpus_link = [&](const std::string& speed) {
    std::string changed = xml;
    constexpr std::string_view kOfGpu = "[10de:15f8] [0000:0000] 00\" pci_link_speed=\"";
    for (std::size_t at = changed.find(kOfGpu); at != std::string::npos; at = changed.find(kOfGpu, at + 1))
      changed.replace(at + kOfGpu.size(), std::string_view("15.753846").size(), speed);
    return links_of(parse_hwloc_xml(changed, "memory"))[2];
  };
  EXPECT_EQ(gpus_link("4.000000"), "gpu1-package1 pcie ?") << "2.5 GT/s, 16 lanes";
  EXPECT_EQ(gpus_link("1.000000"), "gpu1-package1 pcie ?");
  EXPECT_EQ(gpus_link("8.000000"), "gpu1-package1 pcie 8.00 GB/s") << "5 GT/s, 16 lanes, as of a K20";
  EXPECT_EQ(gpus_link("3.938462"), "gpu1-package1 pcie 3.94 GB/s") << "8 GT/s, 4 lanes";
  constexpr std::string_view kOfNic = "[15b3:1017] [0000:0000] 00\" pci_link_speed=\"15.753846";
  xml.replace(xml.find(kOfNic), kOfNic.size(), "[15b3:1017] [0000:0000] 00\" pci_link_speed=\"4.000000");
  const auto links = links_of(parse_hwloc_xml(xml, "memory"));
  EXPECT_THAT(links, Contains("mlx5_0-package1 pcie 4.00 GB/s")) << "NICs do not idle";
}

/// A package of these PCI devices, with what else is in the file.
Machine with_devices(const std::string& devices, const std::string& distances = "") {
  const std::string sets = R"(cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1")";
  return parse_hwloc_xml(
      fmt::format(
          R"(<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">
<object type="Machine" os_index="0" {0} allowed_cpuset="0x1" allowed_nodeset="0x1" gp_index="1">
<object type="Package" os_index="0" {0} gp_index="2"><object type="NUMANode" os_index="0" {0} gp_index="3" local_memory="1073741824"/>
<object type="PU" os_index="0" {0} gp_index="4"/>
<object type="Bridge" gp_index="5" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">{1}</object>
</object></object>{2}</topology>)",
          sets, devices, distances),
      "node.xml");
}

/// `id`: "1002:515e". `inside`: its OS devices.
std::string pci_device(int index, const char* class_id, const char* id, const std::string& inside = "") {
  return fmt::format(
      R"(<object type="PCIDev" gp_index="{}" pci_busid="0000:0c:00.{}" pci_type="{} [{}] [0000:0000] 00" pci_link_speed="31.507692">{}</object>)",
      10 + index, index, class_id, id, inside);
}

TEST(HwlocImport, TakesNoConsolesVgaForAGpu) {
  const Machine machine =
      with_devices(pci_device(0, "0300", "1002:515e") + pci_device(1, "0300", "1002:4752") +
                   pci_device(2, "0380", "1002:7408"));
  ASSERT_EQ(machine.gpus.size(), 1u);
  EXPECT_EQ(machine.gpus[0].model, "device 1002:7408");
}

TEST(HwlocImport, TakesSlicesForUserSpaceForNoNicsBesideTheirAdapter) {
  const std::string slices = pci_device(1, "0200", "1137:00cf") + pci_device(2, "0200", "1137:00cf");
  EXPECT_EQ(with_devices(pci_device(0, "0200", "1137:0043") + slices).nics.size(), 1u);
  EXPECT_EQ(with_devices(slices).nics.size(), 2u) << "a virtual machine's";
}

/// GPUs of AMD, with what its driver tells hwloc, and hwloc's matrix of xGMI.
TEST(HwlocImport, BelievesNoConstantSpeedOfXgmi) {
  const auto between = [](const char* values) {
    std::string gpus;
    for (int i = 0; i < 3; ++i) {
      gpus += pci_device(i, "0380", "1002:7408",
                         fmt::format(R"(<object type="OSDev" gp_index="{}" name="rsmi{}" osdev_type="1">
<info name="Backend" value="RSMI"/><info name="RSMIVRAMSize" value="67092480"/></object>)",
                                     20 + i, i));
    }
    return with_devices(
        gpus, fmt::format(R"(<distances2 type="OSDev" nbobjs="3" kind="9" name="XGMIBandwidth" indexing="gp">
<indexes length="9">20 21 22 </indexes><u64values length="{}">{}</u64values></distances2>)",
                          std::string_view(values).size(), values));
  };
  const Machine constant = between("1000000 100000 100000 100000 1000000 100000 100000 100000 1000000 ");
  EXPECT_THAT(links_of(constant), AllOf(Contains("gpu0-gpu1 xgmi ?"), Contains("gpu1-gpu2 xgmi ?")));
  EXPECT_THAT(constant.remarks, Contains(HasSubstr("hwloc wrote 100 GB/s for xGMI")));
  EXPECT_EQ(constant.gpus[0].memory.value, std::uint64_t{67092480} << 10);
  const Machine measured = between("1000000 200000 50000 200000 1000000 100000 50000 100000 1000000 ");
  EXPECT_THAT(links_of(measured),
              AllOf(Contains("gpu0-gpu1 xgmi 200 GB/s"), Contains("gpu0-gpu2 xgmi 50.0 GB/s")));
  EXPECT_THAT(measured.remarks, ::testing::Not(Contains(HasSubstr("xGMI between every"))));
}

TEST(HwlocImport, ReadsFormat1) {
  const Machine machine = import_hwloc_xml(fixture("one_socket.v1.xml"));
  EXPECT_EQ(machine.model, "Example Power");
  ASSERT_EQ(machine.packages.size(), 1u);
  EXPECT_EQ(machine.packages[0].cores, 2);
  EXPECT_EQ(machine.packages[0].memory.value, std::uint64_t{32} << 30);
  ASSERT_EQ(machine.gpus.size(), 1u);
  ASSERT_EQ(machine.nics.size(), 1u);
  ASSERT_EQ(machine.nics[0].ports.size(), 2u);
  EXPECT_FALSE(machine.nics[0].ports[0].up);
  EXPECT_TRUE(machine.nics[0].ports[1].up);
  EXPECT_EQ(machine.nics[0].ports[1].number, 2);
  EXPECT_THAT(links_of(machine), ElementsAre("gpu0-package0 pcie ?", "mlx4_0-package0 pcie ?"));
}

TEST(HwlocImport, CitesTheFileAndDoubtsItsPcieSpeeds) {
  const Machine machine = import_hwloc_xml(fixture("two_sockets.v2.xml"));
  ASSERT_EQ(machine.citations.size(), 2u);
  EXPECT_THAT(machine.citations[1].fact, HasSubstr("idle"));
  EXPECT_THAT(machine.citations[1].source, HasSubstr("two_sockets.v2.xml"));
}

/// The sentence about a file with this content; nothing may be printed on the side.
std::string sentence_about(std::string_view text) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("bad.xml", text);
  ::testing::internal::CaptureStderr();
  const std::string sentence = usage_sentence([&] { import_hwloc_xml(file); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(sentence, HasSubstr("bad.xml"));
  return sentence;
}

TEST(HwlocImport, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(usage_sentence([&] { import_hwloc_xml(folder.path() / "none.xml"); }),
              AllOf(HasSubstr("no file"), HasSubstr("none.xml")));
  EXPECT_THAT(usage_sentence([&] { import_hwloc_xml(folder.path()); }), HasSubstr("not a regular file"));
  EXPECT_THAT(usage_sentence([&] { import_hwloc_xml("/dev/zero"); }), HasSubstr("not a regular file"));
}

TEST(HwlocImport, RefusesAHugeFileWithoutReadingIt) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("huge.xml", "<topology>");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);  // sparse
  EXPECT_THAT(usage_sentence([&] { import_hwloc_xml(file); }), HasSubstr("more than"));
}

TEST(HwlocImport, RefusesWhatIsNotHwlocs) {
  EXPECT_THAT(sentence_about(""), HasSubstr("empty"));
  EXPECT_THAT(sentence_about("not XML at all"), HasSubstr("not a topology of hwloc's"));
  EXPECT_THAT(sentence_about(std::string(100'000, '\0')), HasSubstr("not a topology of hwloc's"));
  EXPECT_THAT(sentence_about("<system version=\"1\"><cpu/></system>"),
              HasSubstr("not a topology of hwloc's"));
  EXPECT_THAT(sentence_about("<topology version=\"2.0\"></topology>"), HasSubstr("hwloc can read"));
  EXPECT_THAT(sentence_about("<topology version=\"2.0\"><object></topology>"), HasSubstr("hwloc can read"));
}

TEST(HwlocImport, PassesOverDevicesWithoutAName) {
  std::string text = testing::read_all(fixture("two_sockets.v2.xml"));
  for (const std::string name : {" name=\"mlx5_1\"", " name=\"ib0\""})
    text.erase(text.find(name), name.size());
  const Machine machine = parse_hwloc_xml(text, "x.xml");
  // What its nameless device would have said is missing: that mlx5_1 is mlx5_0, seen from the other socket.
  std::vector<std::string> names;
  for (const Nic& nic : machine.nics) names.push_back(nic.name);
  EXPECT_EQ(names.size(), 4u);
  EXPECT_THAT(names, Contains("ib1"));
}

TEST(HwlocImport, RefusesFormat3ByName) {
  std::string text = testing::read_all(fixture("two_sockets.v2.xml"));
  text.replace(text.find("version=\"2.0\""), 13, "version=\"3.0\"");
  EXPECT_THAT(sentence_about(text), AllOf(HasSubstr("format 3"), HasSubstr("--export-xml-flags v2")));
}

TEST(HwlocImport, RefusesEveryTruncation) {
  const std::string text = testing::read_all(fixture("two_sockets.v2.xml"));
  const std::size_t last = text.rfind("</topology>");
  for (std::size_t length = 1; length < last; length += 97) sentence_about(text.substr(0, length));
  EXPECT_THAT(sentence_about(text.substr(0, last)), HasSubstr("truncated"));
}

TEST(HwlocImport, RefusesEntitiesThatGrow) {
  std::string bomb = "<?xml version=\"1.0\"?><!DOCTYPE topology [<!ENTITY a0 \"aaaaaaaaaa\">";
  for (int i = 1; i < 30; ++i) bomb += fmt::format("<!ENTITY a{0} \"&a{1};&a{1};&a{1};&a{1};\">", i, i - 1);
  bomb += "]><topology version=\"2.0\"><info name=\"x\" value=\"&a29;\"/></topology>";
  EXPECT_THAT(sentence_about(bomb), HasSubstr("entities"));
}

TEST(HwlocImport, RefusesEncodingsThatAreNotHwlocs) {
  const std::string text = testing::read_all(fixture("two_sockets.v2.xml"));
  const auto named = [&](const std::string& name) {
    std::string other = text;
    return other.replace(other.find("UTF-8"), 5, name);
  };
  EXPECT_THAT(sentence_about(named("UTF-9")), AllOf(HasSubstr("'UTF-9'"), HasSubstr("lstopo")));
  EXPECT_THAT(sentence_about(named(std::string(10'000, 'x'))), HasSubstr("its encoding is 'xxx"));
  EXPECT_THAT(sentence_about(named("U\n\x1b[31mTF")), HasSubstr("'U\u240a\u241b[31mTF'")) << "not one line";
  for (const char* name : {"utf-8", "UTF-8"})
    EXPECT_EQ(parse_hwloc_xml(named(name), "x.xml").packages.size(), 2u);
}

// Damage in the middle of a file: whatever hwloc makes of it, the answer is a machine that validates or one
// sentence.
TEST(HwlocImport, SurvivesDamage) {
  const std::string good = testing::read_all(fixture("two_sockets.v2.xml"));
  int refused = 0;
  for (std::size_t at = good.find("<topology"); at < good.rfind("</topology>"); at += 41) {
    std::string damaged = good;
    damaged[at] = damaged[at] == '"' ? ' ' : '"';
    ::testing::internal::CaptureStderr();
    try {
      parse_hwloc_xml(damaged, "damaged.xml").validate();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      ++refused;
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "byte " << at;
  }
  EXPECT_GT(refused, 10);
}

// hwloc 2.9 itself crashes on an object without a complete_cpuset.
TEST(HwlocImport, SurvivesAFileThatCrashesHwloc) {
  std::string text = testing::read_all(fixture("two_sockets.v2.xml"));
  const std::string_view attribute = " complete_cpuset=\"0x2\"";
  for (std::size_t at = text.find(attribute); at != std::string::npos; at = text.find(attribute)) {
    text.erase(at, attribute.size());
  }
  EXPECT_THAT(sentence_about(text), HasSubstr("hwloc can read"));
}

TEST(HwlocImport, SaysThatItTookTooLong) {
  const std::string text = testing::read_all(fixture("two_sockets.v2.xml"));
  EXPECT_EQ(usage_sentence([&] { parse_hwloc_xml(text, "a.xml", {0}); }),
            "hwloc did not read 'a.xml' within 0 s: it is damaged, or of far more than one host; export it "
            "again with: lstopo FILE.xml");
  EXPECT_NO_THROW(parse_hwloc_xml(text, "a.xml"));
}

TEST(HwlocImport, RefusesMoreDevicesThanAHostHas) {
  const auto xml = [](int nics) {
    std::string devices;
    for (int i = 0; i < nics; ++i) {
      devices += fmt::format(
          "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"{:04x}:00:00.0\" "
          "pci_type=\"0200 [15b3:1017] [0000:0000] 00\" pci_link_speed=\"0.000000\"/>",
          100 + i, i);
    }
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology version=\"2.0\">"
           "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
           "allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" "
           "gp_index=\"1\"><object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
           "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1024\"/>"
           "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
           "complete_nodeset=\"0x1\" gp_index=\"3\"/>" +
           devices + "</object></topology>";
  };
  EXPECT_EQ(parse_untried_hwloc_xml(xml(1024), "a.xml").nics.size(), 1024u);
  EXPECT_THAT(usage_sentence([&] { parse_hwloc_xml(xml(1025), "a.xml"); }),
              HasSubstr("'a.xml' has 1025 NICs, but no host has more than 1024; export one host's"));
}

TEST(LiveProbe, FindsThisMachine) {
  const Machine machine = probe_this_machine();
  EXPECT_FALSE(machine.name.empty());
  ASSERT_FALSE(machine.packages.empty());
  EXPECT_GT(machine.packages[0].cores, 0);
  EXPECT_GT(machine.packages[0].memory.value, 0u);
  EXPECT_NO_THROW(machine.validate());
}

}  // namespace
}  // namespace polyring
