// The text of a benchmark's log as all formats see it: whole lines without what launchers write in front of
// them, and without NCCL's own messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace polyring {

struct LogLine {
  int number = 0;  // in the file, from 1
  std::string text;
};

struct LogText {
  std::string name;                       // of the file
  std::string text;                       // all of it, as UTF-8
  std::vector<LogLine> lines = {};        // without empty ones
  std::vector<LogLine> messages = {};     // NCCL's own: "NCCL INFO NCCL_ALGO set by environment to Ring"
  std::optional<int> cut = std::nullopt;  // the last line's number: it has no end, and is left out
};

/// Reads a log. Throws a usage Error for a folder, a file that is too large, empty or binary.
LogText read_log(const std::filesystem::path& path);
/// The same of text; `name` is the file's in errors.
LogText parse_log_text(std::string_view text, std::string name);

/// Throws a usage Error: "'FILE' line N: " and the sentence, which says what to do instead.
template <typename... Args>
[[noreturn]] void refuse(const LogText& log, int line, fmt::format_string<Args...> sentence, Args&&... args) {
  usage_error("'{}' line {}: {}", log.name, line, fmt::format(sentence, std::forward<Args>(args)...));
}

/// In small letters.
std::string lower(std::string_view text);
/// The parts between blanks.
std::vector<std::string_view> words(std::string_view text);

/// The whole text as a number from 0 up; nothing where it is none, or not finite.
std::optional<double> number_in(std::string_view text);
/// The same, as a count; "1.04858e+06" is one.
std::optional<std::uint64_t> whole_in(std::string_view text);
/// The count behind `key`, as 2 in "#processes = 2" or "Ranks: 2"; blanks, ':' and '=' may stand between.
std::optional<std::uint64_t> whole_after(std::string_view text, std::string_view key);
/// The word behind `key`, or nothing.
std::string word_after(std::string_view text, std::string_view key);

}  // namespace polyring
