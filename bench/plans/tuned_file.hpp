// The file in which `polyring tune` keeps its choices: JSON, one choice a line.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/tuning.hpp"

namespace polyring {

/// In the place of a file's name: none is to be used.
inline constexpr std::string_view kNoTunedFile = "none";

/// Where the choices are unless an option says otherwise: $POLYRING_TUNED, or polyring/tuned.json in
/// $XDG_CONFIG_HOME or ~/.config. Nothing where that is "none", or there is no home.
std::optional<std::filesystem::path> default_tuned_file();

std::string tuned_text(std::span<const TunedPlan> choices);
/// Throws a usage Error that names `file` unless `text` is of this format, of no newer version, and every
/// choice's plan fits its ranks.
std::vector<TunedPlan> parse_tuned(const std::string& text, const std::string& file);

/// Adds the choices to those that the file has by now; two processes that do so at once both keep theirs.
/// Throws as parse_tuned() and update_file() do.
void add_to_tuned_file(const std::filesystem::path& path, std::span<const TunedPlan> choices);

}  // namespace polyring
