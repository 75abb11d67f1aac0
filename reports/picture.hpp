// A drawn picture of a machine, for reports.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace polyring {

/// Throws a usage Error unless `path` ends in .svg or .png and a file can be written there.
void check_picture(const std::filesystem::path& path);

/// Draws the hosts that `probe_json` describes (see topology/inventory/formats/probe_json.hpp) with
/// reports/picture.py. `source` says where they were read, and stands below the picture. The file appears
/// whole or not at all; when there is one of that name, .1, .2, … is appended. Returns its path. Throws an
/// Error as check_picture() does, and with the code not_available where no Python has matplotlib.
std::filesystem::path write_picture(std::string_view probe_json, const std::string& source,
                                    const std::filesystem::path& path);

}  // namespace polyring
