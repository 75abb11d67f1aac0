// Which cores a process may use: of a topology of hwloc's, and live.
#include <sched.h>

#include "tests/folder.hpp"
#include "tests/topology/support.hpp"
#include "topology/inventory/probe.hpp"
#include "topology/inventory/probe/hwloc_cores.hpp"

namespace polyring::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Of a host with two packages of one core, PUs 0 and 1, for a process that is bound to `affinity`.
AllowedCores cores(const char* cpuset, const char* affinity) {
  std::string xml = testing::read_all(tests_folder() / "topology/fixtures/two_sockets.v2.xml");
  const std::string_view all = R"(allowed_cpuset="0x3")";
  xml.replace(xml.find(all), all.size(), fmt::format(R"(allowed_cpuset="{}")", cpuset));
  const auto topology = HwlocTopology::from_xml(xml);
  const hwloc_bitmap_t bound = hwloc_bitmap_alloc();
  hwloc_bitmap_sscanf(bound, affinity);
  const AllowedCores found = cores_of(*topology, bound);
  hwloc_bitmap_free(bound);
  return found;
}

TEST(AllowedCores, AreOfTheCpusetAndTheAffinity) {
  EXPECT_EQ(cores("0x3", "0x3"), (AllowedCores{{0, 1}, {0, 1}}));
  EXPECT_EQ(cores("0x3", "0x2"), (AllowedCores{{0, 1}, {1}}));
  EXPECT_EQ(cores("0x2", "0xff"), (AllowedCores{{1}, {1}}));
  EXPECT_THAT(cores("0x2", "0x1").affinity, IsEmpty());
}

/// Binds this thread while it lives.
class BoundTo {
 public:
  explicit BoundTo(int cpu) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~BoundTo() { sched_setaffinity(0, sizeof before_, &before_); }
  BoundTo(const BoundTo&) = delete;
  BoundTo& operator=(const BoundTo&) = delete;

 private:
  cpu_set_t before_;
};

TEST(AllowedCores, OfThisProcessAreThoseThatItIsBoundTo) {
  if (probe_without_gpus().cores() < 2) GTEST_SKIP() << "this machine has one core";
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &own)) --last;
  const BoundTo bound(last);
  const auto allowed = allowed_cores();
  ASSERT_TRUE(allowed);
  EXPECT_EQ(allowed->affinity.size(), 1U);
}

}  // namespace
}  // namespace polyring::probe
