#include "base/control_groups.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

class CpuLimit : public ::testing::Test {
 protected:
  void write(const fs::path& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << content;
  }
  std::optional<double> limit() const { return cpu_limit(folder_.path()); }
  /// Of the groups that were held back at all.
  std::vector<Seconds> throttled() const {
    std::vector<Seconds> times = throttled_times(folder_.path());
    std::erase(times, Seconds{});
    return times;
  }
  examples::TemporaryFolder folder_;
};

TEST_F(CpuLimit, IsNoneWithoutAnyFile) {
  EXPECT_EQ(limit(), std::nullopt);
  EXPECT_TRUE(throttled().empty());
}

TEST_F(CpuLimit, IsTheLeastOfAllGroupsAbove) {
  write("proc/self/cgroup", "0::/pod/container\n");
  write("proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  const fs::path top = "sys/fs/cgroup";
  write(top / "pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), std::nullopt);
  write(top / "pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(limit(), 1.5);
  write(top / "pod/container/cpu.max", "50000 100000\n");
  EXPECT_EQ(limit(), 0.5);
  write(top / "pod/cpu.stat", "usage_usec 9\nnr_throttled 7\nthrottled_usec 2500000\n");
  EXPECT_EQ(throttled(), std::vector{Seconds{2.5}});
  write(top / "pod/container/cpu.stat", "throttled_usec 500000\n");
  EXPECT_EQ(throttled(), (std::vector{Seconds{2.5}, Seconds{0.5}})) << "the highest group first";
}

TEST_F(CpuLimit, OfVersion1) {
  write("proc/self/cgroup", "4:memory:/elsewhere\n3:cpu,cpuacct:/job\n0::/\n");
  write("proc/self/mountinfo",
        "33 32 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "34 32 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const fs::path top = "sys/fs/cgroup/cpu,cpuacct";
  write(top / "cpu.cfs_quota_us", "-1\n");
  write(top / "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), std::nullopt) << "-1 is no limit";
  write(top / "job/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(limit(), std::nullopt) << "a quota of no period";
  write(top / "job/cpu.cfs_period_us", "100000\n");
  write(top / "job/cpu.stat", "nr_periods 5\nnr_throttled 2\nthrottled_time 1500000000\n");
  EXPECT_EQ(limit(), 4.0);
  EXPECT_EQ(throttled(), std::vector{Seconds{1.5}});
}

}  // namespace
}  // namespace polyring
