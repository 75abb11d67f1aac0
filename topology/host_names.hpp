// Many host names in few words.
#pragma once

#include <span>
#include <string>

namespace polyring {

/// "node07"; "node07 and node11"; "node07, node09 and node11"; from five names on as Slurm writes them, in
/// the order in which they first appear: "node[01-12,14], login1".
std::string names_text(std::span<const std::string> names);

}  // namespace polyring
