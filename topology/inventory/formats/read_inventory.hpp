// Reads hosts from files that describe them.
#pragma once

#include <filesystem>
#include <span>

#include "topology/inventory/inventory.hpp"

namespace polyring {

/// Reads one file, or several with one or more hosts each: hosts in the order of the files, merged as
/// merged() does; a note names hosts that several files describe. A file is as read_cluster() has it.
Inventory read_inventory(std::span<const std::filesystem::path> files);

}  // namespace polyring
