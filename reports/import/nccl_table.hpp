// The table of nccl-tests and rccl-tests, in any of its widths: what a header names is where it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/import/bandwidths.hpp"
#include "reports/import/plain_table.hpp"

namespace polyring {

struct NcclRow {
  int line = 0;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::string dtype;
  std::string op;         // "none" where the table has no such column
  std::string root;       // "-1" where the table has no such column
  std::string algorithm;  // of rccl-tests' column "algo"
  struct Half {
    bool in_place = false;
    std::vector<double> us;  // of each cycle
    Bandwidths bandwidths;   // of the first
    bool checked = false;
    std::optional<std::uint64_t> wrong;
  };
  std::vector<Half> halves;  // one or two
};

class NcclTable {
 public:
  /// The table below a header such as "#  size  count  type  redop  root  time  algbw  busbw #wrong …";
  /// nothing where the line is none. `above` is the line above, which says "out-of-place" and "in-place".
  static std::optional<NcclTable> below(std::string_view header, std::string_view above);

  /// How many words a row has.
  std::size_t width() const { return width_; }
  /// The row of so many words; nothing where a number is none, or where time and bandwidth contradict each
  /// other.
  std::optional<NcclRow> row(const std::vector<std::string_view>& words) const;

  bool has(std::string_view column) const { return find_column(names_, column).has_value(); }

 private:
  std::optional<NcclRow::Half> half_of(const std::vector<std::string_view>& words, int half,
                                       double bytes) const;

  std::vector<std::string> names_;
  std::size_t width_ = 0;
  bool begins_in_place_ = false;
};

/// That of kCollectives whose table this can be alone, where the log does not say: from its columns, from
/// whether `count` is of a block, and from busbw / algbw. `ranks` where known.
std::optional<std::string> collective_by_rows(const std::vector<NcclRow>& rows, std::optional<int> ranks);

/// Those of all halves.
std::vector<Bandwidths> bandwidths_of(const std::vector<NcclRow>& rows);

}  // namespace polyring
