// A table of whole rows below a line of column names: what OSU, IMB, Gloo and PARAM print.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/import/log_text.hpp"

namespace polyring {

/// The place of a name, or of its n-th occurrence.
std::optional<std::size_t> find_column(const std::vector<std::string>& names, std::string_view name,
                                       int occurrence = 0);

struct PlainTable {
  std::vector<std::string> names = {};  // none before a header was seen

  /// Takes the names in a header whose columns two blanks or more, or tabs, part: they may have single
  /// blanks.
  void read_header(std::string_view header);
  bool open() const { return !names.empty(); }
  bool has(std::string_view column) const { return find_column(names, column).has_value(); }

  /// The words of a row; nothing where the line is none: where it has another number of words, or one that is
  /// no number. Only "Validation" is text.
  std::optional<std::vector<std::string_view>> row(std::string_view line) const;
  /// The number of a column in a row; nothing where there is no such column.
  std::optional<double> number(const std::vector<std::string_view>& row, std::string_view column) const;
  std::optional<std::uint64_t> whole(const std::vector<std::string_view>& row, std::string_view column) const;
};

/// Whether a line begins as a row does, with a count, and goes on.
bool begins_as_row(std::string_view line);

}  // namespace polyring
