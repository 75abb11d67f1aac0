// Checks of GPUs, on made-up hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/accept/gpu_direct.hpp"
#include "bench/accept/gpu_watch.hpp"
#include "tests/bench/accept/fake_measurer.hpp"
#include "tests/topology/support.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using testing::FakeMeasurer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_site;
using testing::row;
using testing::rows_of_check;

GpuState good_gpu(int number) {
  GpuState gpu;
  gpu.name = "NVIDIA A100";
  gpu.pci = fmt::format("0000:{:02x}:00.0", 0x10 + number);
  gpu.clock_MHz = 210;
  gpu.most_MHz = 1410;
  gpu.seen_MHz = 1410;
  gpu.memory_MHz = 1215;
  gpu.celsius = 40;
  gpu.slowdown_celsius = 92;
  gpu.watts = gpu.default_watts = 400;
  gpu.slowdown_known = true;
  gpu.ecc = 1;
  gpu.xids_known = true;
  return gpu;
}

/// Hosts of two GPUs each; `change` has each GPU.
class Gpus {
 public:
  explicit Gpus(int hosts) : site(make_site(std::vector<int>(static_cast<std::size_t>(hosts), 2))) {
    std::vector<Inventory> parts;
    for (int host = 0; host < hosts; ++host) {
      Machine machine = preset("dgx-a100", 1).host(0);
      machine.name = site.hosts[static_cast<std::size_t>(host)];
      for (std::size_t i = 0; i < machine.gpus.size(); ++i)
        machine.gpus[i].pci = good_gpu(static_cast<int>(i)).pci;
      parts.push_back(inventory_of(std::move(machine)));
      states.push_back({"550.54", {good_gpu(0), good_gpu(1)}, ""});
    }
    site.inventory = merged(std::move(parts));
  }

  std::vector<CheckRow> check() const {
    FakeMeasurer measurer(site, 1);
    measurer.reply = [&](int host, const std::string&, const std::string&) {
      const GpuStates& of_host = states[static_cast<std::size_t>(host)];
      const bool is_absent = of_host.gpus.empty() && of_host.why_not.empty();
      return HostReply{is_absent ? "" : json_of(of_host)};
    };
    return rows_of_check("gpu.health", site, measurer);
  }

  /// The only GPU that is not good.
  CheckRow check_one(const std::function<void(GpuState&)>& change) {
    change(states[1].gpus[1]);
    const std::vector<CheckRow> rows = check();
    EXPECT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("gpu1 of node1", Verdict::fail),
                                  row("node1", Verdict::pass), row("node2", Verdict::pass)));
    EXPECT_THAT(rows[1].hosts, ElementsAre("node1"));
    states[1].gpus[1] = good_gpu(1);
    return rows[1];
  }

  Site site;
  std::vector<GpuStates> states;
};

TEST(GpuHealth, PassesGoodGpus) {
  const std::vector<CheckRow> rows = Gpus(2).check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::pass)));
  EXPECT_EQ(
      rows[0].why,
      "2 GPUs: no slowdown, uncorrected ECC error or Xid while this ran; 40 °C at most, the first one's "
      "clock now 210 of 1410 MHz, driver 550.54.");
}

TEST(GpuHealth, FailsWhatIsWrongWithAGpu) {
  Gpus gpus(3);
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) {
                  gpu.error = 15;
                  gpu.pci = "0000:11:00.0";
                })
                .why,
            "NVML cannot open it (error 15: it has fallen off the bus).");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) {
                  gpu.xids = {79, 31};
                })
                .why,
            "Xid 79, 31 came while this ran.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.remapping_failed = true; }).remedy,
            "Have the GPU replaced.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.retired_pages = 60; }).why,
            "It has retired 60 pages of its memory, of the 64 that it can.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) {
                  gpu.uncorrected = 3;
                  gpu.uncorrected_before = 1;
                })
                .why,
            "It has had 3 uncorrected ECC errors since its driver was loaded, 2 of these while this ran.");
  EXPECT_THAT(gpus.check_one([](GpuState& gpu) { gpu.waits_for_reset = true; }).why,
              HasSubstr("waits for a reset"));
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) {
                  gpu.slowdown = {"power brake", "temperature (hardware)"};
                })
                .why,
            "Its clocks were held down while this ran: power brake, temperature (hardware).");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.celsius = 92; }).why,
            "It was at 92 °C, and slows itself down from 92 on.");
  const CheckRow limited = gpus.check_one([](GpuState& gpu) { gpu.watts = 250; });
  EXPECT_EQ(limited.why, "Its power is limited to 250 of 400 W.");
  EXPECT_EQ(limited.remedy, "Lift the limit (nvidia-smi -pl 400).");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) {
                  gpu.set_MHz = 765;
                  gpu.default_set_MHz = 1095;
                })
                .why,
            "Its clock is set to 765 MHz, and it comes with 1095.");
}

TEST(GpuHealth, FailsWhatDiffersFromMostOfTheModel) {
  Gpus gpus(3);
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.most_MHz = 1275; }).why,
            "Its highest clock is 1275 MHz, and that of most GPUs of its model 1410.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.memory_MHz = 810; }).why,
            "Its memory's highest clock is 810 MHz, and that of most GPUs of its model 1215.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.watts = gpu.default_watts = 300; }).why,
            "Its power limit is 300 W, and that of most GPUs of its model 400.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.ecc = 0; }).remedy,
            "Switch it on (nvidia-smi -e 1), and reboot the host.");
  EXPECT_EQ(gpus.check_one([](GpuState& gpu) { gpu.seen_MHz = 1200; }).why,
            "Its clock was 1200 MHz at most while this ran, and that of half of its model 1410.");
  gpus.states[1].driver = "535.104";
  const std::vector<CheckRow> rows = gpus.check();
  ASSERT_THAT(rows, ElementsAre(row("node0", Verdict::pass), row("gpu0 of node1", Verdict::fail),
                                row("gpu1 of node1", Verdict::fail), row("node2", Verdict::pass)));
  EXPECT_EQ(rows[1].why, "Its driver is 535.104, and that of most GPUs of its model 550.54.");
}

TEST(GpuHealth, ComparesNoTwoModelsAndNoHalves) {
  Gpus gpus(2);
  gpus.states[1].gpus[1].name = "NVIDIA A30";
  gpus.states[1].gpus[1].most_MHz = 1440;
  EXPECT_THAT(gpus.check(), ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::pass)));
  gpus = Gpus(2);
  for (GpuState& gpu : gpus.states[1].gpus) gpu.most_MHz = 1275;
  EXPECT_THAT(gpus.check(), ElementsAre(row("node0", Verdict::pass), row("node1", Verdict::pass)));
}

TEST(GpuHealth, DoesNotPassWhatIsUnknown) {
  Gpus gpus(3);
  gpus.states[0] = {"", {}, "NVIDIA's driver crashed in nvmlInit_v2"};
  gpus.states[1].gpus[0].slowdown_known = false;
  gpus.states[1].gpus[0].ecc = -1;
  gpus.states[2] = {};
  EXPECT_THAT(gpus.check(), ElementsAre(row("node0", Verdict::error), row("gpu0 of node1", Verdict::missing),
                                        row("node1", Verdict::pass), row("node2", Verdict::missing)));
  gpus.states.assign(3, {});
  const std::vector<CheckRow> rows = gpus.check();
  ASSERT_THAT(rows, ElementsAre(row("", Verdict::skipped)));
  EXPECT_EQ(rows[0].why, "No host shows a driver of NVIDIA's GPUs.");
}

TEST(GpuStates, ComeBackFromJson) {
  GpuStates states{"550.54", {good_gpu(0)}, ""};
  states.gpus[0].slowdown = {"power brake"};
  states.gpus[0].xids = {79};
  const GpuStates back = gpu_states_of(json_of(states));
  EXPECT_EQ(back.gpus, states.gpus);
  EXPECT_EQ(back.driver, states.driver);
  EXPECT_THAT(gpu_states_of("").gpus, IsEmpty());
}

TEST(GpuStates, LeaveOutPowerLimitsWhichComeWithLoad) {
  probe::GpuHealth health{"550.54", std::vector<probe::NvmlGpuHealth>(2), ""};
  health.gpus[0].clock_reasons = 0x4;
  health.gpus[1].clock_reasons = 0x84;
  health.gpus[1].xids = 20;
  health.gpus[1].power_limit_milliwatts = 250'500;
  const GpuStates states = states_of(health);
  EXPECT_THAT(states.gpus[0].slowdown, IsEmpty());
  EXPECT_THAT(states.gpus[1].slowdown, ElementsAre("power brake"));
  EXPECT_EQ(states.gpus[1].xids.size(), health.gpus[1].first_xids.size());
  EXPECT_DOUBLE_EQ(states.gpus[1].watts, 250.5);
}

/// What the kernel shows of a host with one GPU and one NIC.
class GdrTree {
 public:
  GdrTree() {
    folder_.write("sys/bus/pci/devices/0000:10:00.0/vendor", "0x10de\n");
    folder_.write("sys/bus/pci/devices/0000:10:00.0/class", "0x030200\n");
    folder_.write("sys/bus/pci/devices/0000:10:00.1/vendor", "0x10de\n");  // its sound
    folder_.write("sys/bus/pci/devices/0000:10:00.1/class", "0x040300\n");
    folder_.write("sys/class/infiniband/mlx5_0/device/vendor", "0x15b3\n");
    folder_.write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    folder_.write("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet\n");  // software
    write("osrelease", "6.8.0-45-generic\n");
    write("modules", "mlx5_ib 1 0 - Live 0x0\nnvidia 2 1 nvidia_peermem_not, Live 0x0\n");
    write("version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Release Build\n");
  }
  void write(const std::string& what, const std::string& text) const {
    folder_.write(what == "osrelease" ? "proc/sys/kernel/osrelease"
                  : what == "modules" ? "proc/modules"
                                      : "proc/driver/nvidia/version",
                  text);
  }
  GpuDirect read() const { return read_gpu_direct(folder_.path()); }

 private:
  testing::TemporaryFolder folder_;
};

CheckRow gdr_of(const GpuDirect& found) {
  const Site site = make_site({1});
  FakeMeasurer measurer(site, 1);
  measurer.reply = [&](int, const std::string&, const std::string&) {
    return HostReply{nlohmann::json{
        {"gpus", found.gpus},
        {"nics", found.nics},
        {"module", found.module},
        {"driver", found.driver},
        {"kernel",
         found.kernel}}.dump()};
  };
  const std::vector<CheckRow> rows = rows_of_check("host.gdr", site, measurer);
  EXPECT_EQ(rows.size(), 1u);
  return rows.front();
}

TEST(HostGdr, FailsWhereNothingLetsNicsReachGpus) {
  const GdrTree tree;
  const GpuDirect found = tree.read();
  EXPECT_EQ(found, (GpuDirect{1, {"mlx5_0"}, "", "closed", "6.8.0-45-generic"}));
  const CheckRow row = gdr_of(found);
  EXPECT_EQ(row.verdict, Verdict::fail);
  EXPECT_THAT(row.why, HasSubstr("It has 1 GPU and 1 NIC (mlx5_0), and nothing lets the NICs reach"));
  EXPECT_THAT(row.remedy, HasSubstr("modprobe nvidia_peermem"));
}

TEST(HostGdr, PassesByAModuleOrDmaBuf) {
  const GdrTree tree;
  for (const char* module : {"nvidia_peermem", "nv_peer_mem"}) {
    tree.write("modules", std::string("mlx5_ib 1 0 - Live 0x0\n") + module + " 16384 0 - Live 0x0\n");
    EXPECT_EQ(tree.read().module, module);
    EXPECT_EQ(gdr_of(tree.read()).verdict, Verdict::pass);
  }
  tree.write("modules", "mlx5_ib 1 0 - Live 0x0\n");
  tree.write("version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15\n");
  EXPECT_THAT(gdr_of(tree.read()).why, HasSubstr("by DMA-BUF"));
  tree.write("osrelease", "5.4.0-1\n");
  EXPECT_EQ(gdr_of(tree.read()).verdict, Verdict::fail) << "this kernel has no DMA-BUF for it";
  tree.write("version", "");
  EXPECT_EQ(gdr_of(tree.read()).verdict, Verdict::missing);
}

TEST(HostGdr, IsSkippedWithoutGpusOrNics) {
  EXPECT_EQ(gdr_of({0, {"mlx5_0"}, "", "", "6.8.0"}).verdict, Verdict::skipped);
  EXPECT_EQ(gdr_of({8, {}, "", "closed", "6.8.0"}).verdict, Verdict::skipped);
  const testing::TemporaryFolder empty;
  EXPECT_EQ(read_gpu_direct(empty.path()), GpuDirect{});
}

}  // namespace
}  // namespace polyring
