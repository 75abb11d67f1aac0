#include "base/control_groups.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

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

/// Adds the group at `place` below a mount and those above it, up to the mount.
void add_down_to(std::vector<ControlGroup>& groups, const fs::path& mount, const fs::path& place,
                 bool unified) {
  fs::path here = mount;
  groups.push_back({here, unified});
  for (const fs::path& part : place) groups.push_back({here /= part, unified});
}

/// A line of /proc/self/cgroup.
struct Membership {
  std::string controllers;  // empty: version 2
  std::string path;
};

/// A line is "0::PATH" of version 2, "4:cpu,cpuacct:PATH" of version 1.
std::optional<Membership> parse_membership(const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return Membership{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

/// Of one group: quota / period.
std::optional<double> cpu_limit_of(const ControlGroup& group) {
  Number quota;
  Number period;
  if (group.unified) {  // "max 100000" or "150000 100000"
    std::ifstream file(group.folder / "cpu.max");
    std::string first;
    std::string second;
    if (file >> first >> second) {
      quota = number_in(first);
      period = number_in(second);
    }
  } else {  // the quota is -1 where there is no limit
    quota = number_in_file(group.folder / "cpu.cfs_quota_us");
    period = number_in_file(group.folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

Number number_in_file(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? number_in(line) : std::nullopt;
}

Number number_after(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key) && line.size() > key.size() &&
        (line[key.size()] == ' ' || line[key.size()] == ':'))
      return number_in(std::string_view(line).substr(key.size() + 1));
  }
  return std::nullopt;
}

std::vector<ControlGroup> control_groups(const fs::path& root, std::string_view controller) {
  std::vector<ControlGroup> groups;
  const std::vector<Mount> all = mounts(root);
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto membership = parse_membership(line);
    if (!membership) continue;
    const bool unified = membership->controllers.empty();
    if (!unified && !has(membership->controllers, controller)) continue;
    for (const Mount& mount : all) {
      const bool its =
          unified ? mount.type == "cgroup2" : mount.type == "cgroup" && has(mount.options, controller);
      if (!its) continue;
      const fs::path place = root / fs::path(mount.place).relative_path();
      add_down_to(groups, place, below(membership->path, mount.root), unified);
    }
  }
  return groups;
}

std::optional<double> cpu_limit(const fs::path& root) {
  std::optional<double> least;
  for (const ControlGroup& group : control_groups(root, "cpu")) {
    const auto limit = cpu_limit_of(group);
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

std::vector<Seconds> throttled_times(const fs::path& root) {
  std::vector<Seconds> times;
  for (const ControlGroup& group : control_groups(root, "cpu")) {
    const fs::path file = group.folder / "cpu.stat";
    const auto time =
        group.unified ? number_after(file, "throttled_usec") : number_after(file, "throttled_time");
    const double unit = group.unified ? 1e-6 : 1e-9;
    times.push_back({static_cast<double>(time.value_or(0)) * unit});
  }
  return times;
}

}  // namespace polyring
