// Baselines: an earlier result of `polyring accept` that was good, by which later ones of the same machine
// are judged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/accept/check.hpp"
#include "reports/result.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// Why a result is no baseline, half a sentence: something failed, broke, was too noisy or was not measured.
/// Empty: it is one. What was measured, and had no threshold, is no obstacle: a first baseline gives it one.
std::string why_no_baseline(const ResultFile& result);

/// What makes two runs incomparable, half a sentence: "its size is 8 ranks on 2 hosts, and here it is 4 ranks
/// on 2 hosts". Empty: nothing does. Names of hosts may differ; hosts of the same names must be under the
/// same leaves. `file` names the baseline's machine where that cannot be read; the rows of `now` do not
/// matter.
std::string difference_from(const ResultFile& baseline, const std::string& file, const ResultFile& now,
                            const Inventory& hosts);

class Baseline final : public GivenThresholds {
 public:
  /// Gives nothing.
  Baseline() = default;
  Baseline(ResultFile result, std::string file, double tolerance)
      : result_(std::move(result)), file_(std::move(file)), tolerance_(tolerance) {}

  /// Throws a usage Error that says what differs and what to do.
  void check_comparable(const ResultFile& now, const Inventory& hosts) const;

  /// The median of that subject and size, or else the median over all subjects of that size, less or more the
  /// tolerance. Nothing where that is 0, or counts events.
  std::optional<Threshold> of(const Judged& judged) const override;
  std::optional<Bytes> size_of(std::string_view check) const override;

 private:
  ResultFile result_;
  std::string file_;  // empty: there is none
  double tolerance_ = 0;
};

/// `10%` or `0.1`, from 0 to less than 100 %. Throws a usage Error for anything else.
double parse_tolerance(std::string_view text);

/// Throws a usage Error for a file that is none of accept, is of a run that came to no end, or is no baseline
/// for another reason, and as read_result() does.
Baseline read_baseline(const std::string& path, double tolerance);

/// To be called before long work. Throws a usage Error where the file exists already, or cannot be written.
void check_new_baseline(const std::string& path);

}  // namespace polyring
