// Text from elsewhere (hosts, files, command lines) in Markdown: it must be shown as it is, and do nothing.
#pragma once

#include <string>
#include <string_view>

namespace polyring {

/// One line without markup, links, HTML, and breaks of a table; what is no printable text is shown as
/// printable_line() does.
std::string markdown_text(std::string_view text);

/// As code: in backticks, more of them than follow each other in the text (CommonMark 0.31, "Code spans").
std::string markdown_code(std::string_view text);

}  // namespace polyring
