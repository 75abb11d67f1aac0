// Files that appear whole or not at all, and in the place of others only where that is asked for.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace polyring {

/// Reads a whole file. Throws a usage Error when it is missing or cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes a file that nobody else writes at the same time, such as one in a folder from create_folder().
/// Throws a usage Error when that fails, also when the disk is full.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Writes `content` beside `path` and then gives it the name `path`, or with .1, .2, … appended when there is
/// something of that name. Returns the path. Throws a usage Error when it cannot be written.
std::filesystem::path create_file(const std::filesystem::path& path, std::string_view content);

/// The same for a folder, which `fill` fills; folders above it are created. An empty folder `path` is used as
/// it is. When `fill` throws, nothing is left behind.
std::filesystem::path create_folder(const std::filesystem::path& path,
                                    const std::function<void(const std::filesystem::path&)>& fill);

/// Writes `content` beside `path` and then gives it the name `path`, in the place of what had it: for files
/// that are kept up to date. Throws a usage Error when that fails; the old file is there then as it was.
void replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace polyring
