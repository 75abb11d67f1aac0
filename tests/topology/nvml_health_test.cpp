// Watching GPUs, with fake drivers: see fake_nvml.cpp.
#include "topology/inventory/probe/nvml_health.hpp"

#include "tests/topology/support.hpp"

namespace polyring::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string fake(const std::string& name) {
  return std::string(POLYRING_FAKE_NVML) + "/fake_nvml_" + name + ".so";
}

TEST(GpuWatch, TellsHowEachGpuIs) {
  GpuWatch watch(fake("mesh"));
  const GpuHealth health = watch.read();
  EXPECT_EQ(health.why_not, "");
  EXPECT_EQ(health.driver, "535.104.05");
  ASSERT_EQ(health.gpus.size(), 4u);
  const NvmlGpuHealth& idle = health.gpus[0];
  EXPECT_EQ(text_of(idle.pci), "0000:10:00.0");
  EXPECT_EQ(text_of(idle.name), "Tesla Fake-SXM2-16GB");
  EXPECT_EQ(idle.sm_megahertz, 135u);
  EXPECT_EQ(idle.sm_most_megahertz, 1530u);
  EXPECT_EQ(idle.sm_seen_megahertz, 0u) << "an idle GPU turns its clocks down";
  EXPECT_EQ(idle.memory_most_megahertz, 877u);
  EXPECT_THAT(throttle_reasons(idle.clock_reasons), IsEmpty());
  EXPECT_EQ(idle.ecc, 1);
  EXPECT_TRUE(idle.events_watched);
  EXPECT_EQ(idle.xids, 0u);
  const NvmlGpuHealth& hot = health.gpus[1];
  EXPECT_THAT(throttle_reasons(hot.clock_reasons),
              ElementsAre("hardware slowdown", "temperature (hardware)"));
  EXPECT_EQ(hot.hottest_celsius, 91u);
  EXPECT_EQ(hot.slowdown_celsius, 87u);
  EXPECT_EQ(hot.sm_seen_megahertz, 1530u);
  EXPECT_EQ(hot.xids, 2u);
  EXPECT_EQ(hot.first_xids[0], 79u);
  EXPECT_EQ(hot.first_xids[1], 31u);
  const NvmlGpuHealth& worn = health.gpus[2];
  EXPECT_EQ(worn.uncorrected_errors, 3u);
  EXPECT_EQ(worn.uncorrected_before, 3u);
  EXPECT_EQ(worn.retired_pages, 2u);
  EXPECT_EQ(worn.remapped_rows, 1u);
  EXPECT_TRUE(worn.retirement_pending);
  EXPECT_FALSE(worn.remapping_failed);
  const NvmlGpuHealth& held = health.gpus[3];
  EXPECT_EQ(held.set_megahertz, 900u);
  EXPECT_EQ(held.default_set_megahertz, 1312u);
  EXPECT_EQ(held.power_limit_milliwatts, 150'000u);
  EXPECT_EQ(held.default_power_limit_milliwatts, 300'000u);
}

TEST(GpuWatch, KeepsWhatItHasSeen) {
  GpuWatch watch(fake("mesh"));
  watch.read();
  EXPECT_EQ(watch.read().gpus[1].xids, 2u);
}

TEST(GpuWatch, TellsWhichGpuIsLost) {
  GpuWatch watch(fake("lost"));
  const GpuHealth health = watch.read();
  ASSERT_EQ(health.gpus.size(), 2u);
  EXPECT_EQ(health.gpus[0].error, 0);
  EXPECT_EQ(health.gpus[1].error, 15);
}

TEST(GpuWatch, SaysWhyItKnowsNothing) {
  EXPECT_THAT(GpuWatch("libno-such-library.so.1").read().why_not, HasSubstr("is not there"));
  EXPECT_THAT(GpuWatch(fake("unloaded")).read().why_not, HasSubstr("modprobe nvidia"));
  GpuWatch hanging(fake("hang"));
  EXPECT_THAT(hanging.read({0.2}).why_not, HasSubstr("did not answer within 200 ms in nvmlInit_v2"));
  EXPECT_THAT(hanging.read({0.2}).why_not, HasSubstr("did not answer"));
}

TEST(Helper, ThatCrashesSaysSo) {
  Helper helper([](HelperRequests& requests) {
    requests.wait(std::chrono::seconds(10));
    std::abort();
  });
  EXPECT_EQ(helper.ask({10}), Ending::crashed);
  EXPECT_EQ(helper.ask({10}), Ending::crashed);
}

TEST(Helper, AnswersAgainAndAgain) {
  const Shared<int> number;
  Helper helper([&](HelperRequests& requests) {
    while (requests.wait(std::chrono::seconds(10)) == HelperRequests::Next::asked) {
      ++*number;
      requests.answered();
    }
  });
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(helper.ask({10}), Ending::by_itself);
    EXPECT_EQ(*number, i);
  }
}

}  // namespace
}  // namespace polyring::probe
