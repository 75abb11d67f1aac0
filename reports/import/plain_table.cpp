#include "reports/import/plain_table.hpp"

#include <algorithm>

namespace polyring {

std::optional<std::size_t> find_column(const std::vector<std::string>& names, std::string_view name,
                                       int occurrence) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name && occurrence-- == 0) return i;
  return std::nullopt;
}

void PlainTable::read_header(std::string_view header) {
  names.clear();
  for (std::size_t at = 0; (at = header.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const std::size_t end = std::min({header.find("  ", at), header.find('\t', at), header.size()});
    std::string_view name = header.substr(at, end - at);
    if (name.ends_with(' ')) name.remove_suffix(1);
    names.emplace_back(name);
    at = end;
  }
}

std::optional<std::vector<std::string_view>> PlainTable::row(std::string_view line) const {
  auto parts = words(line);
  if (parts.empty() || parts.size() != names.size() || !whole_in(parts[0])) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!number_in(parts[i]) && names[i] != "Validation") return std::nullopt;
  return parts;
}

std::optional<double> PlainTable::number(const std::vector<std::string_view>& row,
                                         std::string_view column) const {
  const auto at = find_column(names, column);
  return at ? number_in(row[*at]) : std::nullopt;
}

std::optional<std::uint64_t> PlainTable::whole(const std::vector<std::string_view>& row,
                                               std::string_view column) const {
  const auto at = find_column(names, column);
  return at ? whole_in(row[*at]) : std::nullopt;
}

bool begins_as_row(std::string_view line) {
  const auto parts = words(line);
  return parts.size() > 1 && whole_in(parts[0]);
}

}  // namespace polyring
