#include "reports/wrong_results.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace polyring {

std::string wrong_note(const CollectiveRow& row) {
  return fmt::format("{}: {} of {} bytes{} gave {} wrong elements and was not timed.", kWrongResults,
                     row.algorithm, row.size_bytes, row.in_place ? " in place" : "", row.wrong.value_or(0));
}

WrongResults wrong_results(const ResultFile& result) {
  WrongResults found;
  if (const auto* rows = std::get_if<std::vector<CollectiveRow>>(&result.rows)) {
    const auto is_wrong = [](const CollectiveRow& row) { return row.wrong.value_or(0) > 0; };
    found.of = rows->size();
    found.rows = static_cast<std::size_t>(std::ranges::count_if(*rows, is_wrong));
  }
  for (const std::string& note : result.notes) {
    if (!note.starts_with(kWrongResults)) continue;
    const std::string_view rest = std::string_view(note).substr(kWrongResults.size());
    found.notes.push_back(rest.starts_with(": ") ? std::string(rest.substr(2)) : note);
  }
  return found;
}

}  // namespace polyring
