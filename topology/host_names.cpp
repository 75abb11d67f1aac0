#include "topology/host_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace polyring {
namespace {

/// "node07" is "node" and 7 of two digits; a name without a number, or one too long for it, has no digits.
struct Numbered {
  std::string stem;
  std::size_t digits = 0;
  std::uint64_t number = 0;
};

Numbered numbered(const std::string& name) {
  constexpr std::size_t kMostDigits = 9;
  std::size_t digits = 0;
  while (digits < name.size() &&
         std::isdigit(static_cast<unsigned char>(name[name.size() - 1 - digits])) != 0)
    ++digits;
  if (digits == 0 || digits > kMostDigits) return {name, 0, 0};
  Numbered result{name.substr(0, name.size() - digits), digits, 0};
  std::from_chars(name.data() + result.stem.size(), name.data() + name.size(), result.number);
  return result;
}

std::string ranges_text(std::vector<std::uint64_t> numbers, std::size_t digits) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t last = begin;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(fmt::format("{:0{}}", numbers[begin], digits));
    if (last > begin) ranges.back() += fmt::format("-{:0{}}", numbers[last], digits);
    begin = last + 1;
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

std::string listed(std::span<const std::string> names) {
  if (names.empty()) return {};
  if (names.size() == 1) return names.front();
  return fmt::format("{} and {}", fmt::join(names.first(names.size() - 1), ", "), names.back());
}

}  // namespace

std::string names_text(std::span<const std::string> names) {
  constexpr std::size_t kMostListed = 4;
  if (names.size() <= kMostListed) return listed(names);
  std::vector<std::pair<std::string, std::size_t>> stems;  // with their digits, in the order of appearance
  std::map<std::pair<std::string, std::size_t>, std::vector<std::uint64_t>> numbers;
  for (const std::string& name : names) {
    const Numbered parts = numbered(name);
    const std::pair stem{parts.stem, parts.digits};
    auto& of_stem = numbers[stem];
    if (of_stem.empty()) stems.push_back(stem);
    of_stem.push_back(parts.number);
  }
  std::vector<std::string> texts;
  for (const auto& stem : stems) {
    const std::vector<std::uint64_t>& of_stem = numbers[stem];
    const std::string text = ranges_text(of_stem, stem.second);
    if (stem.second == 0) {
      texts.push_back(stem.first);
    } else {
      texts.push_back(of_stem.size() == 1 ? stem.first + text : fmt::format("{}[{}]", stem.first, text));
    }
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void tell_apart(std::vector<std::string>& names) {
  std::map<std::string, int> hosts;
  for (const std::string& name : names) ++hosts[name];
  std::set<std::string> taken(names.begin(), names.end());
  std::map<std::string, int> last;
  for (std::string& name : names) {
    if (hosts[name] == 1) continue;
    const std::string shared = name;
    do {
      name = fmt::format("{}#{}", shared, ++last[shared]);
    } while (!taken.insert(name).second);
  }
}

}  // namespace polyring
