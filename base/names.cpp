#include "base/names.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace polyring {
namespace {

/// The optimal string alignment distance: the fewest edits, where none touches what another has changed.
std::size_t edits(std::string_view from, std::string_view to) {
  // Rows of the usual table, for the first i characters of `from`.
  std::vector<std::size_t> before_last(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

/// The only one of `known` for which `fits` is true.
std::optional<std::string> only_one(std::span<const std::string> known, const auto& fits) {
  const auto found = std::ranges::find_if(known, fits);
  if (found == known.end() || std::any_of(found + 1, known.end(), fits)) return std::nullopt;
  return *found;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::optional<std::string> known_name(std::string_view text, std::span<const std::string> known) {
  const std::string typed = lower_case(text);
  const auto found =
      std::ranges::find_if(known, [&](const std::string& name) { return lower_case(name) == typed; });
  if (found == known.end()) return std::nullopt;
  return *found;
}

std::optional<std::string> nearest_name(std::string_view text, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 64;  // nobody mistypes that much
  if (text.empty() || text.size() > kLongest) return std::nullopt;
  const std::string typed = lower_case(text);
  std::optional<std::string> nearest;
  std::size_t fewest = std::max<std::size_t>(1, typed.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t needed = edits(typed, lower_case(name));
    if (needed >= fewest || needed >= name.size()) continue;
    fewest = needed;
    nearest = name;
  }
  if (nearest) return nearest;
  const auto longer = [&](const std::string& name) { return lower_case(name).starts_with(typed); };
  const auto shorter = [&](const std::string& name) { return typed.starts_with(lower_case(name)); };
  const auto completed = only_one(known, longer);
  return completed ? completed : only_one(known, shorter);
}

std::string did_you_mean(std::string_view text, std::span<const std::string> known) {
  const auto nearest = nearest_name(text, known);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : ";";
}

std::string unknown_name(std::string_view what, std::string_view text, std::span<const std::string> known) {
  return fmt::format("unknown {} '{}'{} choose from {}", what, text, did_you_mean(text, known),
                     fmt::join(known, ", "));
}

}  // namespace polyring
