// Makes text from files, hosts, drivers and firmware safe to show: a terminal must not obey it, and one line
// must stay one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyring {

/// Bytes that are not UTF-8 become "�"; all else stays.
std::string valid_utf8(std::string_view text);

/// Valid UTF-8 in which newlines and tabs are the only control characters. Others become their symbols ("␛"
/// for ESC). Bytes that are not UTF-8 and characters that change the writing direction become "�".
std::string printable(std::string_view text);

/// The same in one line: newlines and tabs become symbols, too.
std::string printable_line(std::string_view text);
/// At most the first `most` characters of that line, and "…" if there are more.
std::string printable_line(std::string_view text, std::size_t most);

}  // namespace polyring
