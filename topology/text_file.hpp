// Reading whole text files, with the checks that keep a wrong path from becoming a hang.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace polyring {

/// The file's content. Throws a usage Error when it is missing, not a regular file, unreadable, empty, or
/// larger than 64 MiB, which no topology is.
std::string read_text_file(const std::filesystem::path& path);

/// For a sentence: no longer than this, and without bytes that a terminal might obey.
std::string printable(std::string_view text, std::size_t most);

}  // namespace polyring
