#include "bench/session/memory_room.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

using Number = std::optional<std::uint64_t>;

Number number_in(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const bool good = std::from_chars(text.data() + begin, end, number).ec == std::errc{};
  return good ? Number(number) : std::nullopt;
}

/// The whole file, of a line: "max" is no number.
Number number_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? number_in(line) : std::nullopt;
}

/// The number behind `key` in a file of "key number" or "key: number kB".
Number number_after(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key) && line.size() > key.size() &&
        (line[key.size()] == ' ' || line[key.size()] == ':'))
      return number_in(std::string_view(line).substr(key.size() + 1));
  }
  return std::nullopt;
}

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
  const Number limit = number_of(group / version.limit);
  if (!limit || *limit >= kNone) return std::nullopt;
  const std::uint64_t taken = number_of(group / version.taken).value_or(0);
  const std::uint64_t cached = number_after(group / "memory.stat", version.cached).value_or(0);
  return Bytes{minus(*limit, minus(taken, cached))};
}

bool has(const std::string& list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A line of /proc/self/mountinfo: "36 35 0:31 ROOT MOUNT OPTIONS … - TYPE SOURCE SUPER_OPTIONS".
struct Mount {
  std::string root;
  std::string place;
  std::string type;
  std::string options;
};

std::vector<Mount> mounts(const fs::path& root) {
  std::vector<Mount> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    found.push_back({words[3], words[4], dash[1], dash[3]});
  }
  return found;
}

/// Where the group `path` of /proc/self/cgroup is below a mount whose top is the group `top`.
fs::path below(const std::string& path, const std::string& top) {
  if (top == "/") return fs::path(path).relative_path();
  if (path == top) return {};
  return path.starts_with(top + "/") ? fs::path(path.substr(top.size() + 1)) : fs::path();
}

void take_least(MemoryRoom& room, const fs::path& group, const Version& version) {
  const std::optional<Bytes> in_group = room_in(group, version);
  if (!in_group || (room.cgroup && *room.cgroup <= *in_group)) return;
  struct stat folder {};
  room.cgroup = in_group;
  room.cgroup_id = ::stat(group.c_str(), &folder) == 0 ? folder.st_ino : 0;
}

/// The least of a group and those above it, up to the mount.
void take_least_up_from(MemoryRoom& room, const fs::path& mount, const fs::path& group,
                        const Version& version) {
  take_least(room, mount, version);
  fs::path here = mount;
  for (const fs::path& part : group) take_least(room, here /= part, version);
}

/// A line of /proc/self/cgroup is "0::PATH" of version 2, "4:memory:PATH" of version 1.
void take_cgroup(MemoryRoom& room, const fs::path& root) {
  const std::vector<Mount> all = mounts(root);
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const bool unified = controllers.empty();
    if (!unified && !has(controllers, "memory")) continue;
    for (const Mount& mount : all) {
      const bool its =
          unified ? mount.type == "cgroup2" : mount.type == "cgroup" && has(mount.options, "memory");
      if (!its) continue;
      const fs::path place = root / fs::path(mount.place).relative_path();
      take_least_up_from(room, place, below(path, mount.root), unified ? kVersion2 : kVersion1);
    }
  }
}

/// /proc/self/statm begins with the pages of address space in use.
std::uint64_t address_space_in_use(const fs::path& root) {
  const std::uint64_t pages = number_of(root / "proc/self/statm").value_or(0);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryRoom memory_room(const fs::path& root, std::optional<Bytes> free_in_shm,
                       std::optional<Bytes> address_space_limit) {
  constexpr std::uint64_t kKilo = 1024;
  MemoryRoom room;
  if (const Number available = number_after(root / "proc/meminfo", "MemAvailable"))
    room.host = {*available * kKilo};
  take_cgroup(room, root);
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
