// The Table itself: how columns become text, Markdown and CSV.
#include "reports/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/printable.hpp"
#include "reports/csv.hpp"
#include "reports/markdown.hpp"

namespace polyring {
namespace {

constexpr std::string_view kColumnGap = "  ";

/// Characters as a terminal counts them: UTF-8 bytes that do not continue one.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string padding(width - std::min(width, width_of(text)), ' ');
  return align == Align::left ? text + padding : padding + text;
}

std::string centred(const std::string& text, std::size_t width, char fill) {
  const std::size_t room = width - std::min(width, width_of(text));
  return std::string(room / 2, fill) + text + std::string(room - room / 2, fill);
}

void end_line(std::string& lines) {
  lines.erase(lines.find_last_not_of(' ') + 1);
  lines += '\n';
}

/// The column's name where there is only one header line.
std::string full_name(const Column& column) {
  std::string name = column.group.empty() ? column.header : column.group + " " + column.header;
  if (!column.unit.empty()) name += " (" + column.unit + ")";
  return name;
}

/// The same for programs: "out-of-place time" in "us" is out_of_place_time_us.
std::string plain_name(const Column& column) {
  std::string unit = column.unit == "%" ? "percent" : column.unit;
  if (unit.ends_with("/s")) unit.replace(unit.size() - 2, 2, "ps");  // GBps, as in results
  std::string name;
  for (const std::string& part : {column.group, column.header, unit}) {
    for (const char c : part.empty() || name.empty() ? part : "_" + part) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
        name += c;
      } else if (!name.empty() && name.back() != '_') {
        name += '_';
      }
    }
  }
  return name;
}

/// Neighbouring columns of one group, and how many characters wide they are together.
struct Group {
  std::string name;
  std::size_t first = 0;
  std::size_t width = 0;
};

std::vector<Group> groups(const std::vector<Column>& columns, const Table::Widths& widths) {
  std::vector<Group> found;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (widths[i] == 0) continue;
    if (found.empty() || found.back().name != columns[i].group) {
      found.push_back({columns[i].group, i, widths[i]});
    } else {
      found.back().width += kColumnGap.size() + widths[i];
    }
  }
  return found;
}

/// Whether a column that is shown has such a text.
bool any(const std::vector<Column>& columns, const Table::Widths& widths, std::string Column::*text) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (widths[i] != 0 && !(columns[i].*text).empty()) return true;
  return false;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), gap_});
  gap_ = false;
}

void Table::add_gap() { gap_ = !rows_.empty(); }

bool Table::silent(std::size_t column) const {
  return !rows_.empty() &&
         std::ranges::all_of(rows_, [&](const Row& row) { return row.cells[column].empty(); });
}

Table::Widths Table::widths(std::size_t longest) const {
  Widths each;
  std::set<int> spares;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = std::max({width_of(columns_[i].header), width_of(columns_[i].unit), std::size_t{1}});
    for (const Row& row : rows_) width = std::max(width, width_of(printable_line(row.cells[i])));
    each.push_back(silent(i) ? 0 : width);
    spares.insert(columns_[i].spare);
  }
  std::set<int> taken{0};
  const auto of_taken = [&] {
    Widths widths = each;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (!taken.contains(columns_[i].spare)) widths[i] = 0;
    // A group's name may be wider than its columns.
    for (const Group& group : groups(columns_, widths)) {
      const std::size_t needed = width_of(group.name) + 2;
      if (!group.name.empty() && needed > group.width) widths[group.first] += needed - group.width;
    }
    return widths;
  };
  for (const int spare : spares) {
    taken.insert(spare);
    if (spare > 0 && length(of_taken()) > longest) taken.erase(spare);
  }
  return of_taken();
}

std::size_t Table::length(const Widths& widths) const {
  std::size_t length = 0;
  for (const std::size_t width : widths) length += width == 0 ? 0 : width + kColumnGap.size();
  return length - std::min(length, kColumnGap.size());
}

std::string Table::spared(const Widths& widths) const {
  std::string names;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] != 0 || silent(i)) continue;
    const std::string& group = columns_[i].group;
    names += fmt::format("{}{}{}{}", names.empty() ? "" : ", ", group, group.empty() ? "" : " ",
                         columns_[i].header);
  }
  return names;
}

std::string Table::text(std::size_t longest) const {
  const Widths all = widths(longest);
  return head(all) + body(all, 0);
}

template <typename CellOf>
void Table::add_line(std::string& lines, const Widths& widths, const CellOf& cell_of) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == 0) continue;
    lines += padded(cell_of(i), widths[i], columns_[i].align);
    lines += kColumnGap;
  }
  end_line(lines);
}

template <typename CellOf>
void Table::add_markdown(std::string& lines, const Widths& widths, const CellOf& cell_of) const {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (widths[i] != 0) lines += "| " + cell_of(i) + " ";
  lines += "|\n";
}

std::string Table::head(const Widths& widths, TableStyle style) const {
  const bool markdown = style == TableStyle::markdown;
  std::string lines = caption.empty() ? "" : (markdown ? markdown_text(caption) : caption) + "\n\n";
  if (markdown) {
    add_markdown(lines, widths, [&](std::size_t i) { return markdown_text(full_name(columns_[i])); });
    add_markdown(lines, widths, [&](std::size_t i) {
      return std::string(columns_[i].align == Align::left ? ":---" : "---:");
    });
    return lines;
  }
  if (any(columns_, widths, &Column::group)) {
    for (const Group& group : groups(columns_, widths)) {
      lines += group.name.empty() ? std::string(group.width, ' ')
                                  : centred(" " + group.name + " ", group.width, '-');
      lines += kColumnGap;
    }
    end_line(lines);
  }
  add_line(lines, widths, [&](std::size_t i) { return columns_[i].header; });
  if (any(columns_, widths, &Column::unit))
    add_line(lines, widths, [&](std::size_t i) { return columns_[i].unit; });
  add_line(lines, widths, [&](std::size_t i) { return std::string(widths[i], '-'); });
  return lines;
}

std::string Table::body(const Widths& widths, std::size_t begin, TableStyle style) const {
  std::string lines;
  for (std::size_t row = begin; row < rows_.size(); ++row) {
    const std::vector<std::string>& cells = rows_[row].cells;
    if (style == TableStyle::markdown) {
      add_markdown(lines, widths, [&](std::size_t i) { return markdown_text(cells[i]); });
    } else {
      if (rows_[row].gap_before) lines += '\n';
      add_line(lines, widths, [&](std::size_t i) { return printable_line(cells[i]); });
    }
  }
  return lines;
}

std::string Table::markdown() const {
  const Widths all = widths();
  return head(all, TableStyle::markdown) + body(all, 0, TableStyle::markdown);
}

std::string Table::csv() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(plain_name(column));
  std::string lines = csv_line(names);
  for (const Row& row : rows_) lines += csv_line(row.cells);
  return lines;
}

std::string Table::json() const {
  std::string lines;
  for (const Row& row : rows_) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      nlohmann::ordered_json value = printable(row.cells[i]);
      if (columns_[i].align == Align::right) {
        const auto number = nlohmann::ordered_json::parse(row.cells[i], nullptr, false);
        if (number.is_number() || row.cells[i].empty()) value = number.is_number() ? number : nullptr;
      }
      object[plain_name(columns_[i])] = std::move(value);
    }
    lines += fmt::format("{}  {}", lines.empty() ? "" : ",\n", object.dump());
  }
  return fmt::format("[\n{}\n]\n", lines);
}

}  // namespace polyring
