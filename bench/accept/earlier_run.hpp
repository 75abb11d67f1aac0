// What a run of `polyring accept` that came to no end has judged already, for one that goes on from there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/result.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

class EarlierRun {
 public:
  /// Has judged nothing.
  EarlierRun() = default;
  EarlierRun(ResultFile result, std::string file) : result_(std::move(result)), file_(std::move(file)) {}

  /// Throws a usage Error that says what differs: the hosts by their names, what difference_from() names.
  void check_same(const ResultFile& now, const Inventory& hosts) const;

  /// The rows of a check that was judged to its end. None where one of them broke, is missing or was skipped,
  /// nor of the last check, whose rows may have been cut off.
  std::vector<CheckRow> rows_of(std::string_view check) const;

 private:
  ResultFile result_;
  std::string file_;  // empty: there is none
};

/// Throws a usage Error for a file that is none of accept, or is of a run that came to its end or of several
/// rounds, and as read_result() does.
EarlierRun read_earlier_run(const std::string& path);

}  // namespace polyring
