// Draws hosts into a file, with where they were read.
#pragma once

#include <filesystem>

#include "bench/cli/options.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// Draws the hosts that `options` describe, those of pictured(), and says where the picture is, and on it and
/// to the user how the others differ. Throws as write_picture() does.
void draw_hosts(const MachineOptions& options, const Inventory& hosts, const std::filesystem::path& path);

}  // namespace polyring
