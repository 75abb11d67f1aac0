// Many host names in few words.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace polyring {

/// "node07"; "node07 and node11"; "node07, node09 and node11"; from five names on as Slurm writes them, in
/// the order in which they first appear: "node[01-12,14], login1".
std::string names_text(std::span<const std::string> names);

/// Appends #1, #2, … to each of the names that several hosts have, in their order: "localhost#1".
void tell_apart(std::vector<std::string>& names);

}  // namespace polyring
