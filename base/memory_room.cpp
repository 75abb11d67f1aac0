#include "base/memory_room.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/control_groups.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

using Number = std::optional<std::uint64_t>;

std::uint64_t minus(std::uint64_t limit, std::uint64_t taken) { return limit - std::min(limit, taken); }

/// The files of a version: its limit, what is taken, and in memory.stat what of it would be given up.
struct Version {
  const char* limit;
  const char* taken;
  const char* cached;
};
constexpr Version kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kVersion2{"memory.max", "memory.current", "inactive_file"};

/// What is left in one group; its limit is absent in a root group, and so high that it is none where nobody
/// has set it.
std::optional<Bytes> room_in(const fs::path& group, const Version& version) {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 60;
  const Number limit = number_in_file(group / version.limit);
  if (!limit || *limit >= kNone) return std::nullopt;
  const std::uint64_t taken = number_in_file(group / version.taken).value_or(0);
  const std::uint64_t cached = number_after(group / "memory.stat", version.cached).value_or(0);
  return Bytes{minus(*limit, minus(taken, cached))};
}

void take_least(MemoryRoom& room, const fs::path& group, const Version& version) {
  const std::optional<Bytes> in_group = room_in(group, version);
  if (!in_group || (room.cgroup && *room.cgroup <= *in_group)) return;
  struct stat folder {};
  room.cgroup = in_group;
  room.cgroup_id = ::stat(group.c_str(), &folder) == 0 ? folder.st_ino : 0;
}

/// /proc/self/statm begins with the pages of address space in use.
std::uint64_t address_space_in_use(const fs::path& root) {
  const std::uint64_t pages = number_in_file(root / "proc/self/statm").value_or(0);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryRoom memory_room(const fs::path& root, std::optional<Bytes> free_in_shm,
                       std::optional<Bytes> address_space_limit) {
  constexpr std::uint64_t kKilo = 1024;
  MemoryRoom room;
  if (const Number available = number_after(root / "proc/meminfo", "MemAvailable"))
    room.host = {*available * kKilo};
  for (const ControlGroup& group : control_groups(root, "memory"))
    take_least(room, group.folder, group.unified ? kVersion2 : kVersion1);
  room.shared_files = free_in_shm;
  if (address_space_limit)
    room.address_space = {minus(address_space_limit->value, address_space_in_use(root))};
  return room;
}

MemoryRoom memory_room() {
  std::optional<Bytes> in_shm;
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) in_shm = {std::uint64_t{shm.f_bavail} * shm.f_frsize};
  std::optional<Bytes> address_space;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) address_space = {limit.rlim_cur};
  return memory_room("/", in_shm, address_space);
}

}  // namespace polyring
