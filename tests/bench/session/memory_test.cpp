// What is left of the system's limits, from copies of its files; and what fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/memory_room.hpp"
#include "bench/session/memory_check.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Bytes kMiB{1 << 20};
constexpr Bytes kGiB{1 << 30};

Bytes times(std::uint64_t factor, Bytes bytes) { return {factor * bytes.value}; }

class MemoryRoomTest : public testing::Test {
 protected:
  void write(const fs::path& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << content;
  }
  MemoryRoom room() const { return memory_room(folder_.path(), std::nullopt, std::nullopt); }
  examples::TemporaryFolder folder_;
};

constexpr auto kMount2 = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr auto kMount1 = "33 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST_F(MemoryRoomTest, WithoutAnyFileHasNoLimit) { EXPECT_EQ(room(), MemoryRoom{}); }

TEST_F(MemoryRoomTest, OfTheHostIsWhatIsAvailable) {
  write("proc/meminfo", "MemTotal:  8000 kB\nMemFree:    10 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n");
  EXPECT_EQ(room().host, times(2, kMiB));
}

TEST_F(MemoryRoomTest, OfControlGroupsIsTheLeastOfAllAbove) {
  write("proc/self/cgroup", "0::/jobs/job7/step0\n");
  write("proc/self/mountinfo", kMount2);
  const fs::path top = "sys/fs/cgroup";
  write(top / "jobs/memory.max", "max\n");
  write(top / "jobs/job7/memory.max", "1073741824\n");
  write(top / "jobs/job7/memory.current", "536870912\n");
  write(top / "jobs/job7/memory.stat", "anon 5\ninactive_file 268435456\nactive_file 9\n");
  EXPECT_EQ(room().cgroup, times(768, kMiB)) << "caches do not count as taken";
  write(top / "jobs/job7/step0/memory.max", "2147483648\n");
  EXPECT_EQ(room().cgroup, times(768, kMiB)) << "the group above has less";
  write(top / "jobs/job7/step0/memory.max", "104857600\n");
  write(top / "jobs/job7/step0/memory.current", "209715200\n");
  EXPECT_EQ(room().cgroup, Bytes{}) << "more is taken than allowed";
}

TEST_F(MemoryRoomTest, OfControlGroupsOfVersion1) {
  write("proc/self/cgroup", "9:name=systemd:/x\n4:cpuset,memory:/a/b\n0::/\n");
  write("proc/self/mountinfo", std::string("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n") + kMount1);
  const fs::path top = "sys/fs/cgroup/memory";
  write(top / "memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(room().cgroup, std::nullopt) << "no limit is a very high one";
  write(top / "a/b/memory.limit_in_bytes", "3145728\n");
  write(top / "a/b/memory.usage_in_bytes", "1048576\n");
  EXPECT_EQ(room().cgroup, times(2, kMiB));
  write(top / "a/memory.limit_in_bytes", "2097152\n");
  write(top / "a/memory.usage_in_bytes", "1572864\n");
  write(top / "a/memory.stat", "inactive_file 7\ntotal_inactive_file 524288\n");
  EXPECT_EQ(room().cgroup, kMiB);
}

TEST_F(MemoryRoomTest, OfAContainerWhoseMountBeginsAtItsGroup) {
  write("proc/self/cgroup", "0::/docker/abc/job\n");
  write("proc/self/mountinfo", "35 24 0:30 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
  write("sys/fs/cgroup/job/memory.max", "1048576\n");
  EXPECT_EQ(room().cgroup, kMiB);
  write("proc/self/cgroup", "0::/elsewhere\n");
  write("sys/fs/cgroup/memory.max", "2097152\n");
  EXPECT_EQ(room().cgroup, times(2, kMiB));
}

TEST_F(MemoryRoomTest, OfFilesAndOfAddressSpaceIsGiven) {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  write("proc/self/statm", "3 2 1 1 0 1 0\n");
  const MemoryRoom found = memory_room(folder_.path(), kMiB, Bytes{10 * pages});
  EXPECT_EQ(found.shared_files, kMiB);
  EXPECT_EQ(found.address_space, Bytes{7 * pages});
  EXPECT_EQ(memory_room(folder_.path(), {}, Bytes{pages}).address_space, Bytes{});
}

TEST(MemoryRoom, OfThisProcessIsThere) {
  const MemoryRoom room = memory_room();
  ASSERT_TRUE(room.host);
  EXPECT_GT(*room.host, kMiB);
}

MemoryRoom only(std::optional<Bytes> MemoryRoom::*limit, Bytes left) {
  MemoryRoom room;
  room.*limit = left;
  return room;
}

RankMemory rank(const std::string& host, std::uint64_t needs_mib, const MemoryRoom& room,
                const std::string& machine = "") {
  static Rank processes = 0;
  const Bytes need = times(needs_mib, kMiB);
  return {host, machine.empty() ? host : machine, {need, {}, need}, room, processes++};
}

TEST(Shortage, IsThereWhenTheRanksOfAHostTogetherNeedMore) {
  const MemoryRoom room = only(&MemoryRoom::host, kGiB);
  EXPECT_FALSE(find_shortage(std::vector{rank("a", 900, room)}));
  EXPECT_FALSE(find_shortage(std::vector{rank("a", 900, room), rank("b", 900, room)}));
  const auto found =
      find_shortage(std::vector{rank("a", 900, room), rank("b", 500, room), rank("b", 500, room)});
  ASSERT_TRUE(found);
  EXPECT_EQ(to_text(*found), "2 ranks on b need 0.98 GiB, and 1.00 GiB of its memory are available");
}

TEST(Shortage, IsThereWhenRanksThatShareAGpuNeedMoreThanItHas) {
  MemoryRoom first = only(&MemoryRoom::gpu, kGiB);
  MemoryRoom second = first;
  first.gpu_id = 1;
  second.gpu_id = 2;
  RankMemory one = rank("a", 0, first);
  RankMemory other = rank("a", 0, second);
  one.need.gpu = other.need.gpu = times(900, kMiB);
  EXPECT_FALSE(find_shortage(std::vector{one, other}));
  other.room.gpu_id = 1;
  const auto found = find_shortage(std::vector{one, other});
  ASSERT_TRUE(found);
  EXPECT_EQ(to_text(*found), "2 ranks on a need 1.76 GiB, and 1.00 GiB of its GPU's memory are free");
}

TEST(Shortage, NamesTheScarcestHostAndLimit) {
  const std::vector<RankMemory> ranks{rank("a", 100, only(&MemoryRoom::host, times(90, kMiB))),
                                      rank("b", 100, only(&MemoryRoom::cgroup, times(50, kMiB))),
                                      rank("c", 100, only(&MemoryRoom::address_space, times(70, kMiB)))};
  EXPECT_EQ(to_text(find_shortage(ranks).value()),
            "one rank on b needs 100 MiB, and 50.0 MiB are left of its control group's limit");
  EXPECT_THAT(to_text(find_shortage(std::vector{ranks[2]}).value()), HasSubstr("ulimit -v"));
}

TEST(Shortage, OfAddressSpaceIsEachProcesssOwn) {
  const MemoryRoom room = only(&MemoryRoom::address_space, times(150, kMiB));
  EXPECT_FALSE(find_shortage(std::vector{rank("a", 100, room), rank("a", 100, room)}));
  EXPECT_TRUE(find_shortage(std::vector{rank("a", 100, room), rank("a", 145, room)}))
      << "a part is kept free";
  std::vector<RankMemory> threads{rank("a", 100, room), rank("a", 100, room)};
  threads[1].process = threads[0].process;
  EXPECT_EQ(to_text(find_shortage(threads).value()),
            "2 ranks on a need 200 MiB, and 150 MiB of address space are left by ulimit -v");
}

TEST(Shortage, OfFilesInSharedMemory) {
  RankMemory files = rank("a", 1, only(&MemoryRoom::shared_files, kMiB));
  EXPECT_FALSE(find_shortage(std::vector{files}));
  files.need.shared_files = times(2, kMiB);
  EXPECT_THAT(to_text(find_shortage(std::vector{files}).value()), HasSubstr("are free in its /dev/shm"));
}

TEST(Shortage, CountsHostsThatAreEmulatedOnOneMachineTogether) {
  const MemoryRoom room = only(&MemoryRoom::host, kGiB);
  const std::vector<RankMemory> ranks{rank("node0", 600, room, "vm"), rank("node1", 600, room, "vm")};
  EXPECT_TRUE(find_shortage(ranks));
}

TEST(Shortage, OfControlGroupsIsThatOfEachGroup) {
  MemoryRoom room = only(&MemoryRoom::cgroup, kGiB);
  std::vector<RankMemory> ranks(2, rank("node", 600, room));
  EXPECT_TRUE(find_shortage(ranks)) << "both in one group";
  ranks[1].room.cgroup_id = 7;
  EXPECT_FALSE(find_shortage(ranks)) << "two containers of one host, each with a group of its own";
}

TEST(Fitting, FindsTheLargestSizeInFewSteps) {
  constexpr Count kMillion = 1 << 20;
  const std::vector<Count> limits{
      0, 1, 2, 1000, kMillion / 4, kMillion / 4 + 1, 600'000, 3 * kMillion, 40'000'000'001};
  for (const int element_size : {1, 2, 4, 8}) {
    for (const Count fitting : limits) {
      for (const Count below : {fitting + 1, fitting + 2, fitting + 131'000, 2 * fitting + 7}) {
        int asked = 0;
        const Count found = largest_fitting(below, element_size, [&](Count count) {
          ++asked;
          return count <= fitting;
        });
        EXPECT_LE(asked, 45) << fitting << " below " << below;
        const Count step = kMillion / element_size;
        EXPECT_EQ(found, fitting > step ? fitting / step * step : fitting) << " below " << below;
      }
    }
  }
}

}  // namespace
}  // namespace polyring
