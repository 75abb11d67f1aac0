// Words and command lines of a shell.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace polyring {

/// The word as a POSIX shell must get it to read it as one word.
std::string shell_quoted(std::string_view word);
/// All words, quoted where they must be, with blanks between.
std::string shell_line(std::span<const std::string> words);
/// The words between blanks; quotes have no meaning.
std::vector<std::string> split_words(std::string_view text);

/// The last line that is not blank, where programs say why they failed, without blanks at its ends; as one
/// may show it, and not all of a very long one.
std::string last_line(std::string_view text);
/// The last lines, 16 KiB at most: what somebody may read of what a program printed.
std::string_view last_part(std::string_view text);

}  // namespace polyring
