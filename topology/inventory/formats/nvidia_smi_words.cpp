#include "topology/inventory/formats/nvidia_smi_words.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

namespace polyring::nvidia_smi {
namespace {

constexpr int kMostNvlinks = 1024;

/// How long the escape of a terminal is that the text begins with, 0 where it is none. Text that was pasted
/// has lost the first byte of `ESC[4m`, or has `^[` for it.
std::size_t escape_at(std::string_view text) {
  const std::size_t mark = text.starts_with('\x1b') ? 1 : text.starts_with("^[[") ? 2 : 0;
  if (mark == 0 && !text.starts_with('[')) return 0;
  const std::size_t numbers = mark + (text.substr(mark).starts_with('[') ? 1 : 0);
  const std::size_t end = std::min(text.find_first_not_of("0123456789;?", numbers), text.size());
  const char last = end < text.size() ? text[end] : ' ';
  if (mark == 0) return last == 'm' ? end + 1 : 0;
  return std::isalpha(static_cast<unsigned char>(last)) != 0 ? end + 1 : end;
}

/// Without the escapes with which nvidia-smi underlines the head; blanks for control characters and for the
/// no-break spaces of web pages.
std::string without_escapes(std::string_view line) {
  constexpr std::string_view kNoBreakSpace = "\xc2\xa0";
  std::string plain;
  while (!line.empty()) {
    if (line.starts_with(kNoBreakSpace)) {
      plain += ' ';
      line.remove_prefix(kNoBreakSpace.size());
      continue;
    }
    const std::size_t escape = escape_at(line);
    if (escape == 0) plain += std::iscntrl(static_cast<unsigned char>(line[0])) != 0 ? ' ' : line[0];
    line.remove_prefix(std::max<std::size_t>(escape, 1));
  }
  return plain;
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(without_escapes(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = line.find_first_not_of(' '); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(' ', end);
  }
  return words;
}

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && number_in(name.substr(3)).has_value();
}

std::optional<Cell> cell_of(std::string_view word) {
  static const std::map<std::string_view, PathType> kTypes{
      {"X", PathType::self},    {"PIX", PathType::pix}, {"PXB", PathType::pxb}, {"PHB", PathType::phb},
      {"NODE", PathType::node}, {"SYS", PathType::sys}, {"SOC", PathType::sys}};  // SOC: before driver 384
  if (const auto type = kTypes.find(word); type != kTypes.end()) return Cell{type->second, 0};
  if (!word.starts_with("NV")) return std::nullopt;
  const auto links = number_in(word.substr(2));
  if (!links || *links < 1 || *links > kMostNvlinks) return std::nullopt;
  return Cell{PathType::nvl, *links};
}

bool is_head(const Words& words) {
  return !words.empty() && is_gpu(words[0]) && (words.size() == 1 || !cell_of(words[1]));
}

bool is_cpu_list(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789,-") == std::string_view::npos &&
         std::isdigit(static_cast<unsigned char>(text.back())) != 0;
}

bool is_rest_of_row(const Words& words) {
  return std::ranges::all_of(
      words, [](const std::string& word) { return cell_of(word) || is_cpu_list(word) || word == "N/A"; });
}

bool is_glued(std::string_view word) {
  for (std::size_t at = 1; at < word.size(); ++at) {
    if (cell_of(word.substr(0, at)) && cell_of(word.substr(at))) return true;
  }
  return false;
}

bool is_named_row(const Words& words) {
  return words.size() > 2 && !cell_of(words[0]) &&
         std::ranges::all_of(words.begin() + 1, words.begin() + 3,
                             [](const std::string& word) { return cell_of(word).has_value(); });
}

}  // namespace polyring::nvidia_smi
