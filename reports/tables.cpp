// The Table itself: how columns become text, Markdown and CSV.
#include "reports/tables.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>

#include "base/printable.hpp"
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

/// Neighbouring columns of one group, and how many characters wide they are together.
struct Group {
  std::string name;
  std::size_t first = 0;
  std::size_t width = 0;
};

std::vector<Group> groups(const std::vector<Column>& columns, const std::vector<std::size_t>& widths) {
  std::vector<Group> found;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (found.empty() || found.back().name != columns[i].group) {
      found.push_back({columns[i].group, i, widths[i]});
    } else {
      found.back().width += kColumnGap.size() + widths[i];
    }
  }
  return found;
}

std::string quoted_for_csv(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), gap_});
  gap_ = false;
}

void Table::add_gap() { gap_ = !rows_.empty(); }

Table::Widths Table::widths() const {
  Widths widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = std::max(width_of(columns_[i].header), width_of(columns_[i].unit));
    for (const Row& row : rows_) width = std::max(width, width_of(printable_line(row.cells[i])));
    widths.push_back(width);
  }
  // A group's name may be wider than its columns.
  for (const Group& group : groups(columns_, widths)) {
    const std::size_t needed = width_of(group.name) + 2;
    if (!group.name.empty() && needed > group.width) widths[group.first] += needed - group.width;
  }
  return widths;
}

std::string Table::text() const {
  const Widths all = widths();
  return head(all) + body(all, 0);
}

template <typename CellOf>
void Table::add_line(std::string& lines, const Widths& widths, const CellOf& cell_of) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    lines += padded(cell_of(i), widths[i], columns_[i].align);
    lines += kColumnGap;
  }
  end_line(lines);
}

std::string Table::head(const Widths& widths) const {
  std::string lines = caption.empty() ? "" : caption + "\n\n";
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.group.empty(); })) {
    for (const Group& group : groups(columns_, widths)) {
      lines += group.name.empty() ? std::string(group.width, ' ')
                                  : centred(" " + group.name + " ", group.width, '-');
      lines += kColumnGap;
    }
    end_line(lines);
  }
  add_line(lines, widths, [&](std::size_t i) { return columns_[i].header; });
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.unit.empty(); })) {
    add_line(lines, widths, [&](std::size_t i) { return columns_[i].unit; });
  }
  add_line(lines, widths, [&](std::size_t i) { return std::string(widths[i], '-'); });
  return lines;
}

std::string Table::body(const Widths& widths, std::size_t begin) const {
  std::string lines;
  for (std::size_t row = begin; row < rows_.size(); ++row) {
    if (rows_[row].gap_before) lines += '\n';
    add_line(lines, widths, [&](std::size_t i) { return printable_line(rows_[row].cells[i]); });
  }
  return lines;
}

std::string Table::markdown() const {
  std::string lines = caption.empty() ? "" : markdown_text(caption) + "\n\n";
  for (const Column& column : columns_) lines += "| " + markdown_text(full_name(column)) + " ";
  lines += "|\n";
  for (const Column& column : columns_) lines += column.align == Align::left ? "| :--- " : "| ---: ";
  lines += "|\n";
  for (const Row& row : rows_) {
    for (const std::string& cell : row.cells) lines += "| " + markdown_text(cell) + " ";
    lines += "|\n";
  }
  return lines;
}

std::string Table::csv() const {
  std::string lines;
  const auto add_line = [&](const auto& cell_of) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      lines += (i == 0 ? "" : ",") + quoted_for_csv(cell_of(i));
    }
    lines += "\r\n";
  };
  add_line([&](std::size_t i) { return full_name(columns_[i]); });
  for (const Row& row : rows_) add_line([&](std::size_t i) { return row.cells[i]; });
  return lines;
}

}  // namespace polyring
