#include "reports/import/log_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/files.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace polyring {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kDigits = "0123456789";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// The text behind a launcher's mark of the rank:
///
///   [1,0]<stdout>:          Open MPI's --tag-output; a time, or the job's name, may come before
///   [0] or [default0]:      MPICH's and Intel MPI's -prepend-rank, torchrun
///   0:                      srun --label
std::string_view without_launcher(std::string_view line) {
  for (const std::string_view mark : {"<stdout>:", "<stderr>:"}) {
    const std::size_t at = line.substr(0, 200).find(mark);
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at + mark.size());
    if (line.starts_with(' ') && line.substr(1).starts_with('#')) line.remove_prefix(1);
    return line;
  }
  if (line.starts_with("[default")) {
    const std::size_t end = line.find("]:");
    if (end != std::string_view::npos && end < 20) return line.substr(end + 2);
  }
  const bool bracket = line.starts_with('[');
  std::size_t at = bracket ? 1 : line.find_first_not_of(' ');
  if (at == std::string_view::npos) return line;
  const std::size_t first = at;
  while (at < line.size() && kDigits.find(line[at]) != std::string_view::npos) ++at;
  if (at == first || at - first > 7 || at >= line.size()) return line;
  if (line[at] != (bracket ? ']' : ':')) return line;
  const std::string_view rest = line.substr(at + 1);
  return rest.empty() || kBlanks.find(rest.front()) != std::string_view::npos || rest.front() == '#'
             ? rest.substr(rest.starts_with(' ') ? 1 : 0)
             : line;
}

/// Where in a line "HOST:PID:THREAD [GPU]" stands that begins a message of NCCL; nothing where there is none.
/// What is before it was printed by the benchmark, whose line the message tore.
std::optional<std::size_t> message_begin(std::string_view line) {
  const std::size_t mark = std::min(line.find(" NCCL INFO "), line.find(" NCCL WARN "));
  if (mark == std::string_view::npos) return std::nullopt;
  const std::size_t bracket = line.substr(0, mark).rfind(" [");
  if (bracket == std::string_view::npos) return 0;
  const std::size_t blank = line.substr(0, bracket).find_last_of(kBlanks);
  return blank == std::string_view::npos ? 0 : blank + 1;
}

/// How much of "-1gcn151:1904979:1905073" is not the host's name: what a row's last word and the name have
/// grown together to. Known hosts tell; of others, a number in front is the row's.
std::size_t torn_word(std::string_view word, const std::set<std::string, std::less<>>& hosts) {
  const std::string_view name = word.substr(0, word.find(':'));
  for (std::size_t at = 0; at < name.size(); ++at)
    if (hosts.contains(name.substr(at))) return at;
  const std::size_t end = name.find_first_not_of("-.0123456789");
  return end == std::string_view::npos ? 0 : end;
}

/// The hosts that messages at the begin of lines come from.
std::set<std::string, std::less<>> hosts_of(const std::vector<LogLine>& lines) {
  std::set<std::string, std::less<>> hosts;
  for (const LogLine& line : lines) {
    if (message_begin(line.text) == 0) hosts.emplace(line.text.substr(0, line.text.find(':')));
  }
  return hosts;
}

void take_messages_out(LogText& log) {
  const auto hosts = hosts_of(log.lines);
  std::vector<LogLine> kept;
  for (LogLine& line : log.lines) {
    const auto word = message_begin(line.text);
    if (!word) {
      kept.push_back(std::move(line));
      continue;
    }
    // A time in front, "[2025-06-09 12:00:00] ", belongs to the message.
    const bool torn = !line.text.starts_with('[') && *word > 0;
    const std::size_t begin =
        torn ? *word + torn_word(std::string_view(line.text).substr(*word), hosts) : std::size_t{0};
    log.messages.push_back({line.number, line.text.substr(begin)});
    if (!without_blanks(line.text.substr(0, begin)).empty())
      kept.push_back({line.number, line.text.substr(0, begin)});
  }
  log.lines = std::move(kept);
}

}  // namespace

LogText parse_log_text(std::string_view text, std::string name) {
  if (text.find('\0') != std::string_view::npos)
    usage_error("'{}' is binary or UTF-16, and no log; give the text that the benchmark printed", name);
  LogText log{.name = std::move(name), .text = valid_utf8(text)};
  const std::string_view all = log.text;
  int number = 0;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\n', begin);
    ++number;
    if (end == std::string_view::npos) {
      log.cut = number;
      break;
    }
    std::string_view line = all.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_launcher(line);
    if (!without_blanks(line).empty()) log.lines.push_back({number, std::string(line)});
    begin = end + 1;
  }
  take_messages_out(log);
  return log;
}

LogText read_log(const std::filesystem::path& path) {
  constexpr Bytes kLargest{64u << 20};
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed))
    usage_error("'{}' is a folder; give a log in it", path.string());
  const auto size = std::filesystem::file_size(path, failed);
  if (!failed && size > kLargest.value) {
    usage_error("'{}' has {} bytes, and logs of up to {} are read; cut the benchmark's part out of it",
                path.string(), size, to_text(kLargest));
  }
  return parse_log_text(read_text_file(path), path.string());
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return small;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBlanks, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(number) || number < 0 || std::signbit(number)) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> whole_in(std::string_view text) {
  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc{} && end == text.data() + text.size()) return whole;
  const auto number = number_in(text);
  if (!number || *number >= 0x1p53 || *number != std::floor(*number)) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::string word_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = text.find_first_not_of(" \t:=", at + key.size());
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_first_of(" \t,;'\"}", begin) - begin));
}

std::optional<std::uint64_t> whole_after(std::string_view text, std::string_view key) {
  const std::string word = word_after(text, key);
  return whole_in(std::string_view(word).substr(0, word.find_first_not_of(kDigits)));
}

}  // namespace polyring
