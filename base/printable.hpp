// Text from elsewhere (files, hosts, drivers, firmware) as it may be shown: a terminal must not obey it, and
// a line of it must stay one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace polyring {

/// Valid UTF-8 without control characters but newlines and tabs. Others become their pictures ("␛" for
/// ESC); bytes that are not UTF-8, and characters that turn the direction of writing, become "�".
std::string printable(std::string_view text);

/// The same in one line: newlines and tabs become pictures, too.
std::string printable_line(std::string_view text);
/// The first `most` characters of it, and "…" where there are more.
std::string printable_line(std::string_view text, std::size_t most);

}  // namespace polyring
