// Tables of results: for a terminal, for Markdown and for a spreadsheet.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

enum class Align { left, right };

struct Column {
  std::string group;  // a heading over neighbours that share it; may be empty
  std::string header;
  std::string unit;  // may be empty
  Align align = Align::right;
};

/// Columns, and rows of text: cells have no units, so that CSV readers see plain numbers.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// What all rows have in common, one line; may be empty. Not part of the CSV.
  std::string caption;

  /// `cells` must be one for each column.
  void add_row(std::vector<std::string> cells);
  /// A gap before the next row, in plain text only. No effect before the first row.
  void add_gap();

  bool empty() const { return rows_.empty(); }
  std::size_t size() const { return rows_.size(); }

  std::string text() const;

  /// How many characters each column needs.
  using Widths = std::vector<std::size_t>;
  Widths widths() const;
  /// The two parts of text(), for a table that is printed while its rows come: the caption and the heading,
  /// and the rows from `begin` on. A cell that is wider than its column moves what is right of it.
  std::string head(const Widths& widths) const;
  std::string body(const Widths& widths, std::size_t begin) const;

  std::string markdown() const;
  std::string csv() const;  // RFC 4180, one header line

 private:
  struct Row {
    std::vector<std::string> cells;
    bool gap_before = false;
  };
  template <typename CellOf>
  void add_line(std::string& lines, const Widths& widths, const CellOf& cell_of) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  bool gap_ = false;
};

/// nccl-tests' columns (its doc: size, count, type, redop, root, then time, algbw, busbw and #wrong out of
/// place and in place), then algorithm, the 95 % interval of the median, the fraction of the bound, and the
/// source. `time` is the median. Rows of one size stand together, so that algorithms can be compared.
/// `both_placements`: with the columns for rows in place even where there are none yet.
Table collective_table(std::span<const CollectiveRow> rows, bool both_placements = false);

/// How much faster each algorithm is than `baseline`, per size and placement: the median over pairs of
/// samples of baseline time / time, its 95 % interval, and a verdict. The samples must have been taken in
/// turns; a pair with unequal numbers of samples, or none, gets no ratio. Throws a usage Error when no row
/// has the algorithm `baseline`.
Table comparison_table(std::span<const CollectiveRow> rows, const std::string& baseline);

/// `all`: the rows that the columns are for, where more than `rows` are to come.
Table train_table(std::span<const TrainRow> rows, std::span<const TrainRow> all = {});

/// The plan of each size of bucket, of rows in which they differ.
Table plans_table(std::span<const TrainRow> rows);

/// The default plan of each payload beside the best other one.
Table tune_table(std::span<const TuneRow> rows);

/// With the published columns, and by how much ours differs from them, empty where nothing is published.
Table scale_table(std::span<const ScaleRow> rows);

/// The table for the kind of rows that they are.
Table table(const Rows& rows);

}  // namespace polyring
