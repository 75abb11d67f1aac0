// Draws hosts into a file, with where they were read.
#pragma once

#include <filesystem>

#include "bench/cli/options.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Draws the hosts that `options` describe and says where the picture is. Throws as write_picture() does.
void draw_hosts(const MachineOptions& options, const Cluster& cluster, const std::filesystem::path& path);

}  // namespace polyring
