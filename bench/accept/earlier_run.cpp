#include "bench/accept/earlier_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/files.hpp"
#include "bench/accept/baseline.hpp"
#include "reports/result_text.hpp"

namespace polyring {

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
}

std::vector<CheckRow> EarlierRun::rows_of(std::string_view check) const {
  if (file_.empty()) return {};
  const auto& all = std::get<std::vector<CheckRow>>(result_.rows);
  std::vector<CheckRow> rows;
  if (all.empty() || all.back().check == check) return rows;
  std::ranges::copy_if(all, std::back_inserter(rows),
                       [&](const CheckRow& row) { return row.check == check; });
  const bool judged = std::ranges::none_of(rows, [](const CheckRow& row) {
    return row.verdict == Verdict::error || row.verdict == Verdict::missing ||
           row.verdict == Verdict::skipped;
  });
  if (!judged) rows.clear();
  return rows;
}

EarlierRun read_earlier_run(const std::string& path) {
  const std::string text = read_file(path);
  ResultFile result = is_journal(text) ? parse_journal_as_it_is(text, path) : parse_result(text, path);
  if (result.kind() != "accept")
    usage_error("'{}' is of {}, and polyring accept resumes its own runs; name the journal of one, FILE.part",
                path, result.kind());
  if (!result.partial)
    usage_error("'{}' is of a run that came to its end; start anew, without --resume", path);
  for (const CheckRow& row : std::get<std::vector<CheckRow>>(result.rows))
    if (row.trend) usage_error("'{}' is of several rounds; start anew, without --resume", path);
  return {std::move(result), path};
}

}  // namespace polyring
