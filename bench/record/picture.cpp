#include "bench/record/picture.hpp"

#include <fmt/format.h>

#include <ctime>

#include "base/text.hpp"
#include "bench/cli/output.hpp"
#include "bench/record/version.hpp"
#include "reports/picture.hpp"
#include "topology/inventory/formats/inventory_text.hpp"
#include "topology/inventory/formats/machine_toml.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

std::string today() {
  std::tm day{};
  const std::time_t now = std::time(nullptr);
  ::gmtime_r(&now, &day);
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

/// Where the hosts were read.
std::string source_of(const MachineOptions& options, const Cluster& cluster) {
  if (is_machine_file(options.preset())) return fmt::format("described by {}", options.preset());
  if (!options.machines.empty()) return fmt::format("preset {}", options.preset());
  if (options.files.size() == 1) return fmt::format("read from {}", options.files.front());
  if (!options.files.empty()) return fmt::format("read from {} files", options.files.size());
  if (!options.sysfs.empty()) return fmt::format("read from {}, a copy of /sys", options.sysfs);
  return fmt::format("probed on {}, {}", cluster.host(0).name, today());
}

}  // namespace

void draw_hosts(const MachineOptions& options, const Inventory& hosts, const std::filesystem::path& path) {
  const Cluster cluster = pictured(hosts);
  const std::vector<std::string> others = not_pictured(hosts);
  std::string source = fmt::format("{}, polyring {}", source_of(options, cluster), version());
  if (others.size() == 1) source += "; not drawn: " + others.front();
  if (others.size() > 1)
    source += fmt::format("; not drawn: {} and {} more", others.front(),
                          counted(std::ssize(others) - 1, "difference"));
  print_out("The picture is in {}\n{}", write_picture(probe_json(cluster), source, path).string(),
            not_pictured_text(hosts));
}

}  // namespace polyring
