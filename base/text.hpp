// Text, cut into parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace polyring {

/// The parts between separators, empty ones too; none of an empty text.
std::vector<std::string> split(std::string_view text, char separator);

/// "1 rank", "2 ranks": nouns whose plural is made with s.
std::string counted(std::int64_t count, std::string_view noun);

/// Each of `names`, texts of any type.
std::vector<std::string> strings(const auto& names) { return {names.begin(), names.end()}; }

/// Without the mark that some programs write in front of text in UTF-8.
std::string_view without_byte_order_mark(std::string_view text);

/// Nothing in the place of an empty text.
inline std::optional<std::string> if_any(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

}  // namespace polyring
