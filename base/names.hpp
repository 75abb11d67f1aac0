// Names that people type: in whatever case, and perhaps mistyped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polyring {

/// ASCII letters in lower or upper case, all else as it is.
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

/// The first of `known` that is `text` in some case.
std::optional<std::string> known_name(std::string_view text, std::span<const std::string> known);

/// The one of `known` that somebody who typed `text` most likely meant, in some case: the one that takes the
/// fewest edits (a character more, less or another, or two neighbours exchanged), at most one in three
/// characters; or else the only one that begins with `text`, or with which `text` begins. Nothing where none
/// is near.
std::optional<std::string> nearest_name(std::string_view text, std::span<const std::string> known);

/// "; did you mean NAME?", or ";" where none is near: the remedy follows.
std::string did_you_mean(std::string_view text, std::span<const std::string> known);

/// "unknown WHAT 'TEXT'; did you mean NAME? choose from A, B, C".
std::string unknown_name(std::string_view what, std::string_view text, std::span<const std::string> known);

}  // namespace polyring
