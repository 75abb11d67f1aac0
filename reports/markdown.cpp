#include "reports/markdown.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace polyring {
namespace {

std::string one_line(std::string_view text) {
  std::string line(text);
  for (const char white : {'\n', '\t'}) std::ranges::replace(line, white, ' ');
  return printable_line(line);
}

}  // namespace

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]|~$";
  std::string escaped;
  for (const char c : one_line(text)) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      if (kMarkup.find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string markdown_code(std::string_view text) {
  const std::string line = one_line(text);
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : line) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  // The blanks keep backticks at the ends apart from the fence, and are not shown.
  const std::string blank = longest > 0 ? " " : "";
  return fence + blank + line + blank + fence;
}

}  // namespace polyring
