// What a run of `polyring accept` that came to no end has judged already, for one that goes on from there.
#pragma once

#include <optional>
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

  /// How far its rounds have come; nothing of a run without rounds.
  const std::optional<Rounds>& rounds() const { return result_.rounds; }
  /// The rows of its rounds, with those of the checks of the last one that were judged to their end.
  std::vector<CheckRow> rows_of_rounds() const;

  /// Of a run without rounds the rows of a check that was judged to its end. None where one of them broke, is
  /// missing or was skipped, nor of the last check, whose rows may have been cut off.
  std::vector<CheckRow> rows_of(std::string_view check) const;

 private:
  ResultFile result_;
  std::string file_;  // empty: there is none
};

/// Throws a usage Error for a file that is none of accept, or is of a run that came to its end, or has rounds
/// where `has_rounds` says that there are none, or has none, and as read_result() does.
EarlierRun read_earlier_run(const std::string& path, bool has_rounds);

}  // namespace polyring
