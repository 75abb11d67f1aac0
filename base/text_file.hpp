// Reading whole text files, with the checks that keep a wrong path from becoming a hang.
#pragma once

#include <filesystem>
#include <string>

namespace polyring {

/// The file's content. Throws a usage Error when it is missing, not a regular file, unreadable, empty, or
/// larger than 64 MiB, which no topology is.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace polyring
