#include "topology/inventory/probe/files.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>

namespace polyring::probe {

namespace fs = std::filesystem;

std::string read_small_file(const fs::path& path) {
  constexpr std::size_t kMost = 64 << 10;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(kMost, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

double leading_number(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  return number;
}

std::optional<long> whole_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  long number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<int> number_list(std::string_view text) {
  constexpr std::size_t kMost = 65536;
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    if (error != std::errc{}) return {};
    int last = first;
    if (next != end && *next == '-') {
      const auto [after, wrong] = std::from_chars(next + 1, end, last);
      if (wrong != std::errc{}) return {};
      next = after;
    }
    if (first < 0 || last < first || static_cast<std::size_t>(last - first) >= kMost - numbers.size())
      return {};
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    if (next != end && *next != ',') return {};
    at = next == end ? end : next + 1;
  }
  return numbers;
}

std::string guid_text(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  std::string digits;
  for (const char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c))) digits += c;
    // Whatever else stands there ends the GUID, as a newline does.
    else if (c != ':')
      break;
  }
  if (digits.size() != kDigits && digits.size() != 2 * kDigits) return {};
  digits.erase(0, digits.size() - kDigits);
  if (digits.find_first_not_of('0') == std::string::npos) return {};
  return "0x" + digits;
}

}  // namespace polyring::probe
