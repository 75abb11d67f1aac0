// Tables of results: for a terminal, for Markdown and for a spreadsheet.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.hpp"
#include "reports/result.hpp"

namespace polyring {

enum class Align { left, right };

struct Column {
  std::string group;  // a heading over neighbours that share it; may be empty
  std::string header;
  std::string unit;  // may be empty
  Align align = Align::right;
  int spare = 0;  // not 0: left out where a line is too long; low numbers get room first, equal ones together
};

enum class TableStyle { text, markdown };

/// Columns, and rows of text: cells have no units, so that CSV readers see plain numbers. Text and Markdown
/// leave columns out that are empty in all rows.
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
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::string>& cells(std::size_t row) const { return rows_[row].cells; }
  bool has_gap_before(std::size_t row) const { return rows_[row].gap_before; }

  /// `longest` is how many characters a line may have, if the columns that can be spared suffice for that.
  std::string text(std::size_t longest = kAnyLength) const;
  static constexpr std::size_t kAnyLength = static_cast<std::size_t>(-1);

  /// How many characters each column needs; 0: it is left out.
  using Widths = std::vector<std::size_t>;
  Widths widths(std::size_t longest = kAnyLength) const;
  /// How long the lines get.
  std::size_t length(const Widths& widths) const;
  /// The columns that are left out although rows have something in them, as "count, algbw".
  std::string spared(const Widths& widths) const;
  /// The two parts of a table that is printed while its rows come: the caption and the heading, and the rows
  /// from `begin` on. A cell of text that is wider than its column moves what is right of it.
  std::string head(const Widths& widths, TableStyle style = TableStyle::text) const;
  std::string body(const Widths& widths, std::size_t begin, TableStyle style = TableStyle::text) const;

  std::string markdown() const;
  /// RFC 4180, but lines end with LF alone; the first has names such as error_mean_percent.
  std::string csv() const;
  /// A list with an object for each row, of the same names. In columns that are aligned to the right, numbers
  /// are numbers and what is empty is null.
  std::string json() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool gap_before = false;
  };
  bool silent(std::size_t column) const;
  template <typename CellOf>
  void add_line(std::string& lines, const Widths& widths, const CellOf& cell_of) const;
  template <typename CellOf>
  void add_markdown(std::string& lines, const Widths& widths, const CellOf& cell_of) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  bool gap_ = false;
};

enum class Placements {
  side_by_side,  // nccl-tests' columns: time, algbw, busbw and #wrong out of place and then in place
  below,         // a row for each placement, in half the width
};

/// nccl-tests' columns (its doc: size, count, type, redop, root, then time, algbw, busbw and #wrong), the
/// algorithm, the 95 % interval of the median, the fraction of the bound, and the source. `time` is the
/// median. Rows of one size stand together, so that algorithms can be compared.
Table collective_table(std::span<const CollectiveRow> rows, Placements placements = Placements::side_by_side);

/// How much faster each algorithm is than `baseline`, per size and placement: the median over pairs of
/// samples of baseline time / time, its 95 % interval, and a verdict. The samples must have been taken in
/// turns; a pair with unequal numbers of samples, or none, gets no ratio. Throws a usage Error when no row
/// has the algorithm `baseline`.
Table comparison_table(std::span<const CollectiveRow> rows, const std::string& baseline);

/// How much faster `row` is than `baseline`, pair by pair; nothing when the samples do not come in pairs.
std::optional<Ratio> speed_ratio(const CollectiveRow& baseline, const CollectiveRow& row);

/// `all`: the rows that the columns are for, where more than `rows` are to come.
Table train_table(std::span<const TrainRow> rows, std::span<const TrainRow> all = {});

/// The plan of each size of bucket, of rows in which they differ.
Table plans_table(std::span<const TrainRow> rows);

/// What the GPU of rank 0 did in a step, of rows where one computed.
Table gpu_profile_table(std::span<const TrainRow> rows);

/// The default plan of each payload beside the best other one.
Table tune_table(std::span<const TuneRow> rows);

/// What `accept` found: a line for each check, with the worst verdict of its rows.
Table check_table(std::span<const CheckRow> rows);
/// A line for each row.
Table judgement_table(std::span<const CheckRow> rows);

/// A line for each row, in their order, with what tells rows of one check apart.
Table subjects_table(std::span<const CheckRow> rows);

/// Of rows that several rounds have measured the median in each round, the worst rows first.
Table trends_table(std::span<const CheckRow> rows);

/// Of those that did not pass why, and what to do, the worst first; of few rows also of those that did.
Table reasons_table(std::span<const CheckRow> rows);

/// What else each machine did while its ranks measured.
Table conditions_table(std::span<const HostConditions> hosts);

/// The modelled efficiency of multi-ring, NCCL and MPI by GPUs; empty where fewer than two of them are
/// modelled, or more than one run.
Table contenders_table(std::span<const ScaleRow> rows);

/// The rows as scale_table() orders them: by machine, model and algorithm, in the order in which they came
/// first, then by GPUs.
std::vector<const ScaleRow*> in_scale_order(std::span<const ScaleRow> rows);

/// With the published columns, and by how much ours differs from them, empty where nothing is published.
/// Without the rows of published_runs.hpp.
Table scale_table(std::span<const ScaleRow> rows);

/// The table for the kind of rows that they are.
Table table(const Rows& rows);

}  // namespace polyring
