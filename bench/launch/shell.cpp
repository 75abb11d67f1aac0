#include "bench/launch/shell.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace polyring {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:,=+@%^").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_quoted(word);
  }
  return line;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

std::string last_line(std::string_view text) {
  constexpr std::size_t kMost = 300;  // characters
  const std::size_t end = text.find_last_not_of(kBlank);
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  return printable_line(text.substr(text.find_first_not_of(kBlank)), kMost);
}

std::string_view last_part(std::string_view text) {
  constexpr std::size_t kMost = std::size_t{16} << 10;
  if (text.size() <= kMost) return text;
  text.remove_prefix(text.size() - kMost);
  return text.substr(std::min(text.find('\n') + 1, text.size()));
}

}  // namespace polyring
