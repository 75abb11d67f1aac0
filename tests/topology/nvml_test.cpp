// Against fake drivers: see fake_nvml.cpp for what each of them is.
#include "topology/inventory/probe/nvml.hpp"

#include "tests/topology/support.hpp"
#include "topology/inventory/probe/trial.hpp"
#include "topology/path.hpp"

namespace polyring::probe {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr DeviceId gpu(int index) { return {DeviceKind::gpu, index}; }
constexpr DeviceId package(int index) { return {DeviceKind::package, index}; }

std::string fake(const std::string& name) {
  return std::string(POLYRING_FAKE_NVML) + "/fake_nvml_" + name + ".so";
}

/// GPUs on two packages, at the addresses that the fakes give theirs.
Machine machine_with(int gpus) {
  Machine machine;
  machine.name = "fake";
  machine.packages = {{"package0", {}, 8, {}, {}, {0}}, {"package1", {}, 8, {}, {}, {1}}};
  machine.links.push_back({package(0), package(1), LinkKind::socket_bus, {}, {}});
  for (int i = 0; i < gpus; ++i) {
    machine.gpus.push_back({fmt::format("gpu{}", i),
                            "device 10de:15f9",
                            fmt::format("0000:{:02x}:00.0", 0x10 + i),
                            0,
                            0,
                            {},
                            {}});
    const int home = i < gpus / 2 ? 0 : 1;
    machine.links.push_back({gpu(i), package(home), LinkKind::pcie, gigabytes_per_second(15.75), {}});
  }
  return machine;
}

double gigabytes_between(const Machine& machine, DeviceId a, DeviceId b, LinkKind kind) {
  double found = -1;
  for (const Link& link : machine.links) {
    if (link.kind != kind || !((link.from == a && link.to == b) || (link.from == b && link.to == a)))
      continue;
    EXPECT_EQ(found, -1) << "two links";
    found = link.bandwidth.gigabytes_per_second();
  }
  return found;
}

TEST(NvlinkBandwidth, IsWhatNvidiaPublishesForOneDirection) {
  const auto bandwidth = [](unsigned version, unsigned speed) {
    return nvlink_bandwidth({true, true, version, speed, NvmlRemote::gpu, {}}).gigabytes_per_second();
  };
  EXPECT_DOUBLE_EQ(bandwidth(1, 0), 20);  // P100
  EXPECT_DOUBLE_EQ(bandwidth(1, 19531), 20);
  EXPECT_DOUBLE_EQ(bandwidth(2, 25781), 25);       // V100
  EXPECT_DOUBLE_EQ(bandwidth(5, 25000), 25);       // A100, whose version 3.1 is the number 5
  EXPECT_DOUBLE_EQ(bandwidth(6, 26562), 25);       // H100
  EXPECT_DOUBLE_EQ(bandwidth(7, 26562), 25);       // H100, with a driver that says 5.0
  EXPECT_DOUBLE_EQ(bandwidth(7, 53125), 50);       // B200
  EXPECT_DOUBLE_EQ(bandwidth(5, 14062), 14.0625);  // A6000, of that version too
  EXPECT_DOUBLE_EQ(bandwidth(99, 53125), 50);      // a version to come
  EXPECT_DOUBLE_EQ(bandwidth(99, 0), 0);
}

TEST(Nvml, FillsInAMeshOfGpus) {
  Machine machine = machine_with(4);
  const NvmlFindings findings = add_nvml(machine, {}, fake("mesh"));
  EXPECT_TRUE(findings.source.read) << findings.source.detail;
  EXPECT_THAT(findings.source.detail, HasSubstr("driver 535.104.05, 4 GPUs, 6 of 6 pairs reach"));
  EXPECT_EQ(machine.gpu_driver, "NVIDIA 535.104.05");
  EXPECT_EQ(machine.gpus[2].model, "Tesla Fake-SXM2-16GB");
  EXPECT_EQ(machine.gpus[2].memory.value, std::uint64_t{16} << 30);
  // 4096 bits twice in each of 877 million clocks a second, as NVIDIA publishes for the V100: 900 GB/s.
  EXPECT_NEAR(machine.gpus[2].memory_bandwidth.gigabytes_per_second(), 898.05, 0.01);
  EXPECT_EQ(machine.nvswitches, 0);
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(0), gpu(1), LinkKind::nvlink), 50);
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(1), gpu(3), LinkKind::nvlink), 50);
  // gpu3 has lost one of these, which gpu2 has not noticed yet.
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(2), gpu(3), LinkKind::nvlink), 25);
  EXPECT_EQ(std::ranges::count(machine.links, LinkKind::nvlink, &Link::kind), 6);
  EXPECT_NO_THROW(machine.validate());
  EXPECT_EQ(find_path(machine, gpu(0), gpu(3))->type, PathType::nvl);
}

TEST(Nvml, RemarksOnWhatIsWrongWithGpus) {
  Machine machine = machine_with(4);
  const NvmlFindings findings = add_nvml(machine, {}, fake("mesh"));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu3: 1 of its 6 NVLinks are inactive (link 5)")));
  EXPECT_THAT(machine.remarks,
              Contains(StartsWith("gpu1 holds its clocks down: hardware slowdown, temperature (hardware)")));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu3 holds its clocks down: power limit")));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu2 has had 3 uncorrected ECC errors")));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu2 waits to retire faulty memory")));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu1 changes its ECC mode")));
  EXPECT_THAT(machine.remarks,
              Contains(AllOf(
                  StartsWith("1 of 6 pairs of GPUs that NVLink joins cannot reach each other over it (gpu0 "
                             "and gpu3 first): it is switched off"),
                  Not(HasSubstr("fabricmanager")))));
  EXPECT_EQ(machine.remarks.size(), 7u);
  // gpu0 says that it is idle.
  EXPECT_THAT(findings.busy, ElementsAre("0000:11:00.0", "0000:12:00.0", "0000:13:00.0"));
}

TEST(Nvml, TakesSwitchesTogether) {
  Machine machine = machine_with(8);
  // What another source had read of the same links is not counted again.
  machine.links.push_back({gpu(0), gpu(1), LinkKind::nvlink, gigabytes_per_second(1), {}});
  EXPECT_TRUE(add_nvml(machine, {}, fake("switch")).source.read);
  EXPECT_EQ(machine.nvswitches, 1);
  EXPECT_EQ(std::ranges::count(machine.links, LinkKind::nvlink, &Link::kind), 8);
  // NVIDIA publishes 900 GB/s in both directions together for the H100, over 18 links.
  for (int i = 0; i < 8; ++i)
    EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(i), {DeviceKind::nvswitch, 0}, LinkKind::nvlink),
                     i == 5 ? 425 : 450);
  EXPECT_EQ(std::ranges::find(machine.links, LinkKind::nvlink, &Link::kind)->count, 18);
  EXPECT_THAT(machine.remarks,
              Contains(AllOf(StartsWith("28 of 28 pairs"), HasSubstr("nvidia-fabricmanager"))));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu5: 1 of its 18 NVLinks are inactive (link 7)")));
  EXPECT_THAT(machine.remarks, Not(Contains(HasSubstr("gpu4"))));
}

TEST(Nvml, MissesNoBridgeOnCardsWithoutOne) {
  Machine machine = machine_with(4);
  EXPECT_TRUE(add_nvml(machine, {}, fake("bridged")).source.read);
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(0), gpu(1), LinkKind::nvlink), 100);
  EXPECT_EQ(std::ranges::count(machine.links, LinkKind::nvlink, &Link::kind), 1);
  EXPECT_THAT(machine.remarks, Not(Contains(HasSubstr("inactive"))));
}

TEST(Nvml, SaysWhichGpusAreCutIntoSlices) {
  Machine machine = machine_with(8);
  EXPECT_TRUE(add_nvml(machine, {}, fake("mig")).source.read);
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu6, gpu7 are in MIG mode: jobs get slices")));
  EXPECT_THAT(machine.remarks, Not(Contains(HasSubstr("fabricmanager"))));
  EXPECT_THAT(machine.remarks, Not(Contains(StartsWith("gpu7: "))));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu5: 1 of its 18 NVLinks are inactive")));
  Machine whole = machine_with(8);
  EXPECT_TRUE(add_nvml(whole, {}, fake("switch")).source.read);
  EXPECT_THAT(whole.remarks, Not(Contains(HasSubstr("MIG"))));
}

TEST(Nvml, KnowsPowersProcessorsAndOldDrivers) {
  Machine machine = machine_with(2);
  const NvmlFindings findings = add_nvml(machine, {}, fake("power"));
  EXPECT_TRUE(findings.source.read);
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(0), gpu(1), LinkKind::nvlink), 75);
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(0), package(0), LinkKind::nvlink), 75);
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(1), package(1), LinkKind::nvlink), 75);
  EXPECT_EQ(machine.nvswitches, 0);
  EXPECT_THAT(findings.source.detail, HasSubstr("this driver has no nvmlDeviceGetNvLinkRemoteDeviceType"));
  EXPECT_THAT(machine.remarks, Contains(StartsWith("gpu0 holds its clocks down: power brake")));
}

TEST(Nvml, KnowsGracesLinksAndSaysWhatNeedsMoreRights) {
  Machine machine = machine_with(1);
  const NvmlFindings findings = add_nvml(machine, {}, fake("grace"));
  EXPECT_DOUBLE_EQ(gigabytes_between(machine, gpu(0), package(1), LinkKind::c2c), 450);
  EXPECT_THAT(
      findings.source.detail,
      HasSubstr("nvmlDeviceGetCurrentClocksEventReasons needs more rights than this user has: run as root"));
}

TEST(Nvml, AddsGpusThatPciDoesNotShow) {
  Machine machine = machine_with(0);
  EXPECT_TRUE(add_nvml(machine, {}, fake("mesh")).source.read);
  ASSERT_EQ(machine.gpus.size(), 4u);
  EXPECT_EQ(machine.gpus[3].pci, "0000:13:00.0");
  EXPECT_FALSE(machine.gpus[3].package_known);
  EXPECT_NO_THROW(machine.validate());
}

TEST(Nvml, SaysWhichGpuIsLost) {
  Machine machine = machine_with(2);
  const NvmlFindings findings = add_nvml(machine, {}, fake("lost"));
  EXPECT_THAT(machine.remarks,
              Contains(StartsWith("NVML cannot open its GPU 1 (error 15: it has fallen off the bus)")));
  EXPECT_THAT(findings.gpus, ElementsAre("0000:10:00.0"));
}

/// Nothing of a failed attempt stays in the machine.
void expect_absent(const NvmlFindings& findings, const Machine& machine, const std::string& why) {
  EXPECT_FALSE(findings.source.read);
  EXPECT_THAT(findings.source.detail, HasSubstr(why));
  EXPECT_THAT(machine.remarks, ElementsAre());
  EXPECT_EQ(machine.gpus[0].model, "device 10de:15f9");
  EXPECT_EQ(std::ranges::count(machine.links, LinkKind::nvlink, &Link::kind), 0);
}

TEST(Nvml, SurvivesACrash) {
  Machine machine = machine_with(4);
  expect_absent(add_nvml(machine, {}, fake("crash")), machine, "crashed in nvmlDeviceGetMemoryInfo");
}

TEST(Nvml, DoesNotHang) {
  Machine machine = machine_with(4);
  expect_absent(add_nvml(machine, {}, fake("hang"), {0.3}), machine,
                "did not answer within 300 ms in nvmlInit_v2");
}

TEST(Nvml, SaysWhatIsWaitedFor) {
  Machine machine = machine_with(4);
  std::vector<std::string> said;
  const auto notice = [&](const std::string& text) { said.push_back(text); };
  add_nvml(machine, notice, fake("mesh"));
  EXPECT_TRUE(said.empty()) << "it answers at once";
  machine = machine_with(4);
  const Seconds limit{kLongWait.value + 0.1};
  expect_absent(add_nvml(machine, notice, fake("hang"), limit), machine, "did not answer within 2.10 s");
  EXPECT_EQ(said, std::vector<std::string>{"waiting for NVIDIA's driver, up to 2.10 s: nvmlInit_v2"});
}

TEST(Nvml, SaysWhyItIsAbsent) {
  Machine machine = machine_with(4);
  expect_absent(add_nvml(machine, {}, fake("unloaded")), machine, "modprobe nvidia");
  expect_absent(add_nvml(machine, {}, "libno-such-library.so.1"), machine,
                "libno-such-library.so.1 is not there");
}

}  // namespace
}  // namespace polyring::probe
