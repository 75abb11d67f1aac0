// Reads a machine, or a cluster, that somebody describes in a few lines of TOML: see docs/machines.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "topology/cluster.hpp"

namespace polyring {

/// Whether this text is meant as the name of such a file, not as that of a preset: it ends in ".toml" or has
/// a '/'.
bool is_machine_file(std::string_view text);

/// The cluster that `text` describes. Throws a usage Error that begins with `file` and the line: for what is
/// no TOML, keys that are unknown or of another type, and what described_cluster() refuses.
Cluster parse_machine_toml(std::string_view text, const std::string& file);

/// The same of a file. Throws a usage Error for one that cannot be read, and for files that --from takes.
Cluster read_machine_toml(const std::filesystem::path& file);

/// One host of the preset of this name, or the cluster that such a file describes.
Cluster machine_named(const std::string& preset_or_file);

}  // namespace polyring
