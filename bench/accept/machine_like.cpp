#include "bench/accept/machine_like.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "topology/inventory/formats/read_inventory.hpp"
#include "topology/presets.hpp"

namespace polyring {

Machine machine_like(const std::string& name) {
  const std::vector<std::string_view> presets = preset_names();
  if (std::ranges::find(presets, name) != presets.end()) return preset(name, 1).host(0);
  const std::filesystem::path path(name);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    usage_error("--like '{}' is neither a file nor a machine that polyring knows; these are {}", name,
                fmt::join(presets, ", "));
  }
  return read_inventory(std::span(&path, 1)).cluster.host(0);
}

}  // namespace polyring
