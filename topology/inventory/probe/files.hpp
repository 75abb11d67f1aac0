// Reading the small files of /sys, where each holds one value.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyring::probe {

/// The text of a regular file, 64 KiB of it at most, which is more than any that we read has. Empty when it
/// cannot be read (`speed` of an interface that is down fails), and for pipes and devices, which never end.
std::string read_small_file(const std::filesystem::path& path);

/// The number at the front of the text, 0 when there is none.
double leading_number(std::string_view text);

/// The whole number at the front of the text (`0x10de` too), nothing when there is none.
std::optional<long> whole_number(std::string_view text);

/// The entries of a folder in the order of their names, empty when there is none.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder);

/// A list such as `0-3,8,10-11`, in the form of cpulist files. What is not a list, or has more than 65536
/// numbers, is empty.
std::vector<int> number_list(std::string_view text);

/// `506b:4b03:00c0:ffee`, as OpenFabrics files have a GUID, in the words of its tools: `0x506b4b0300c0ffee`.
/// Of a GID, which is twice as long, the second half. Empty for text that is neither, and for zeros.
std::string guid_text(std::string_view text);

}  // namespace polyring::probe
