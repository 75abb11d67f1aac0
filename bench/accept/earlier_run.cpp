#include "bench/accept/earlier_run.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/files.hpp"
#include "bench/accept/baseline.hpp"
#include "reports/result_text.hpp"
#include "reports/verdicts.hpp"

namespace polyring {
namespace {

/// The names of the checks that it planned, with commas between.
std::string checks_text(const ResultFile& result) {
  std::vector<std::string> names;
  for (const Input& input : result.inputs)
    if (input.name == kPlannedCheck) names.push_back(input.value);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void EarlierRun::check_same(const ResultFile& now, const Inventory& hosts) const {
  if (file_.empty()) return;
  const auto refuse = [&](const std::string& difference) {
    usage_error("'{}' cannot be resumed: {}; start anew, without --resume", file_, difference);
  };
  if (result_.machine == "null") refuse("it does not say which machine it is of");
  const std::string difference = difference_from(result_, file_, now, hosts);
  if (!difference.empty()) refuse(difference);
  const auto moved =
      std::ranges::mismatch(result_.placement, now.placement, {}, &RankHost::host, &RankHost::host);
  if (moved.in1 != result_.placement.end())
    refuse(fmt::format("its rank {} was on {}, and here it is on {}", moved.in1->rank, moved.in1->host,
                       moved.in2->host));
  // A check that is new would have fewer rounds than the others, and one that is gone no more of them.
  const std::string checks = checks_text(result_);
  if (result_.rounds && checks != checks_text(now))
    refuse(fmt::format("its checks are {}, and here they are {}", checks, checks_text(now)));
}

std::vector<CheckRow> EarlierRun::rows_of_rounds() const {
  std::vector<CheckRow> rows;
  if (!result_.rounds) return rows;
  // All others, as those of how it ended, have no trend.
  std::ranges::copy_if(std::get<std::vector<CheckRow>>(result_.rows), std::back_inserter(rows),
                       [](const CheckRow& row) { return row.trend.has_value(); });
  return rows;
}

std::vector<CheckRow> EarlierRun::rows_of(std::string_view check) const {
  if (file_.empty() || result_.rounds) return {};
  const auto& all = std::get<std::vector<CheckRow>>(result_.rows);
  std::vector<CheckRow> rows;
  const auto last =
      std::find_if(all.rbegin(), all.rend(), [](const CheckRow& row) { return row.check != kRanksAlive; });
  if (last == all.rend() || last->check == check) return rows;
  std::ranges::copy_if(all, std::back_inserter(rows),
                       [&](const CheckRow& row) { return row.check == check; });
  const bool judged = std::ranges::none_of(rows, [](const CheckRow& row) {
    return row.verdict == Verdict::error || row.verdict == Verdict::missing ||
           row.verdict == Verdict::skipped;
  });
  if (!judged) rows.clear();
  return rows;
}

EarlierRun read_earlier_run(const std::string& path, bool has_rounds) {
  const std::string text = read_file(path);
  ResultFile result = is_journal(text) ? parse_journal_as_it_is(text, path) : parse_result(text, path);
  if (result.kind() != "accept")
    usage_error("'{}' is of {}, and polyring accept resumes its own runs; name the journal of one, FILE.part",
                path, result.kind());
  if (!result.partial)
    usage_error("'{}' is of a run that came to its end; start anew, without --resume", path);
  if (result.rounds && !has_rounds)
    usage_error("'{}' is of several rounds; give --duration, too, the time of all rounds together", path);
  if (!result.rounds && has_rounds)
    usage_error("'{}' is of a run without rounds; leave --duration out, or start anew, without --resume",
                path);
  return {std::move(result), path};
}

}  // namespace polyring
