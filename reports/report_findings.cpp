#include "reports/report_findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.hpp"
#include "base/units.hpp"
#include "reports/published_runs.hpp"
#include "reports/table_cells.hpp"
#include "reports/verdicts.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

constexpr std::size_t kMostReasons = 6;
constexpr int kMostOfCheck = 2;

std::string level_of(Verdict verdict) {
  return verdict == Verdict::pass ? "pass" : verdict == Verdict::fail ? "fail" : "doubt";
}

ReportFinding of_source(Source source, std::string text) {
  return {"none", std::string(to_text(source)), std::move(text)};
}

/// The rows at the largest size, of most ranks, out of place where there is that; without what others stand
/// for.
std::vector<const CollectiveRow*> last_rows(const std::vector<CollectiveRow>& rows) {
  const auto key = [](const CollectiveRow& row) {
    return std::tuple(row.ranks, row.size_bytes, !row.in_place);
  };
  const auto last = key(*std::ranges::max_element(rows, {}, key));
  std::vector<const CollectiveRow*> found;
  for (const CollectiveRow& row : rows)
    if (key(row) == last && !row.same_as && row.time_us.median > 0) found.push_back(&row);
  std::ranges::stable_sort(found, {}, [](const CollectiveRow* row) { return row->time_us.median; });
  return found;
}

std::string time_text(const CollectiveRow& row) { return to_text(Seconds{row.time_us.median * 1e-6}); }

/// "1.23 ms, 12.1 GB/s of bus bandwidth, 84.0 % of the bound".
std::string speed_text(const CollectiveRow& row) {
  std::string text = time_text(row);
  if (row.busbw_GBps > 0)
    text += fmt::format(", {} GB/s of bus bandwidth", fmt::format("{:.3g}", row.busbw_GBps));
  const bool holds = row.bound_us && !is_faster(row.time_us, exact_timing(*row.bound_us));
  if (holds && row.bound_fraction) text += fmt::format(", {} % of the bound", percent(*row.bound_fraction));
  return text;
}

std::string against(const CollectiveRow& best, const CollectiveRow& baseline) {
  const std::optional<Ratio> ratio = speed_ratio(baseline, best);
  if (!ratio || ratio->coverage < 0.95) {
    return fmt::format("{} takes {}; {} takes {}, and the samples do not suffice to compare them",
                       best.algorithm, speed_text(best), baseline.algorithm, time_text(baseline));
  }
  const std::string interval = fmt::format("{:.3g} times as fast as {} (95 % interval {:.3g} to {:.3g})",
                                           ratio->median, baseline.algorithm, ratio->ci_low, ratio->ci_high);
  const bool decided = ratio->ci_low > 1 || ratio->ci_high < 1;
  return fmt::format("{} is {}{}: {}", best.algorithm, interval, decided ? "" : ", which noise may explain",
                     speed_text(best));
}

/// Before all speed; of what `accept` found wrong there is a judgement.
std::optional<ReportFinding> wrong_finding(const ReportSection& section) {
  const WrongResults wrong = wrong_results(section.result);
  if (!wrong.any()) return std::nullopt;
  std::vector<std::string> parts;
  if (wrong.rows > 0) {
    const auto rows = static_cast<std::int64_t>(wrong.of);
    parts.push_back(fmt::format("{} of {} have wrong results", wrong.rows, counted(rows, "row")));
  }
  if (!wrong.notes.empty()) {
    std::string note = wrong.notes.front();
    if (note.ends_with('.')) note.pop_back();
    parts.push_back(std::move(note));
  }
  if (wrong.notes.size() > 1)
    parts.push_back(fmt::format("{} more of its notes say such a thing", wrong.notes.size() - 1));
  return ReportFinding{"fail", "WRONG", fmt::format("{} ({}).", fmt::join(parts, "; "), section.name)};
}

/// "94.7 % (88.0 to 96.6)".
std::string efficiency_text(const ScaleRow& row) {
  const std::string range =
      row.efficiency_low && row.efficiency_high && row.efficiency_low < row.efficiency_high
          ? fmt::format(" ({} to {})", percent(*row.efficiency_low), percent(*row.efficiency_high))
          : "";
  return percent(row.efficiency) + " %" + range;
}

/// "multi-ring", "nccl with data=64,tensor=8".
std::string way_of(const ScaleRow& row) {
  return row.strategy ? fmt::format("{} with {}", row.algorithm, *row.strategy) : row.algorithm;
}

/// Of the rows of a machine the one to name: the best of multi-ring's, else of all. They are the best first.
const ScaleRow& named_of(const std::vector<ScaleRow>& rows, const std::string& machine) {
  const ScaleRow* best = nullptr;
  for (const ScaleRow& row : rows) {
    if (row.machine != machine) continue;
    if (row.algorithm == "multi-ring") return row;
    if (best == nullptr) best = &row;
  }
  return best == nullptr ? rows.front() : *best;
}

/// What is reached with the most GPUs.
ReportFinding of_scaling(const std::vector<ScaleRow>& rows) {
  const int gpus = std::ranges::max(rows, {}, &ScaleRow::gpus).gpus;
  std::vector<ScaleRow> last;
  std::ranges::copy_if(rows, std::back_inserter(last), [&](const auto& row) { return row.gpus == gpus; });
  std::ranges::stable_sort(last, std::greater{}, &ScaleRow::efficiency);
  const ScaleRow& row = named_of(last, rows.front().machine);
  std::string text =
      fmt::format("{} on {}: {} reaches an efficiency of {} at {}, {}", row.model, row.machine, way_of(row),
                  efficiency_text(row), counted(gpus, "GPU"), to_text(row.source));
  if (row.published_efficiency)
    text += fmt::format("; {} % is published", percent(*row.published_efficiency));
  const auto best = std::ranges::find(last, row.machine, &ScaleRow::machine);
  if (best->algorithm != row.algorithm)
    text += fmt::format("; {} reaches {}", way_of(*best), efficiency_text(*best));
  std::vector<std::string> machines{row.machine};
  for (const ScaleRow& other : last) {
    if (std::ranges::find(machines, other.machine) != machines.end()) continue;
    machines.push_back(other.machine);
    const ScaleRow& named = named_of(last, other.machine);
    text += fmt::format("; on {} {} reaches {}", other.machine, way_of(named), efficiency_text(named));
  }
  text += ".";
  if (row.widest_unknown)
    text += fmt::format(" Most of the range of {} comes from {}.", row.algorithm, *row.widest_unknown);
  return of_source(row.source, std::move(text));
}

struct FindingOf {
  const ReportSection& section;

  std::optional<ReportFinding> operator()(const std::vector<CollectiveRow>& rows) const {
    const std::vector<const CollectiveRow*> last =
        rows.empty() ? decltype(last_rows(rows)){} : last_rows(rows);
    if (last.empty()) return std::nullopt;
    const auto is_vendor = [](const CollectiveRow* row) {
      return row->algorithm == "mpi" || row->algorithm == "nccl";
    };
    const auto vendor = std::ranges::find_if(last, is_vendor);
    const auto best = std::ranges::find_if_not(last, is_vendor);
    const CollectiveRow& first = *last.front();
    std::string text =
        fmt::format("{} of {} on {} of {}: ", kind_name(section.result), to_text(Bytes{first.size_bytes}),
                    counted(first.ranks, "rank"), counted(first.nodes, "host"));
    if (best != last.end() && vendor != last.end()) {
      text += against(**best, **vendor);
    } else {
      text += fmt::format("{}{} takes {}", first.algorithm,
                          last.size() > 1 ? fmt::format(" is the fastest of {} and", last.size()) : "",
                          speed_text(first));
    }
    return of_source(first.source, text + ".");
  }

  std::optional<ReportFinding> operator()(const std::vector<TrainRow>& rows) const {
    if (rows.empty()) return std::nullopt;
    const TrainRow& best = *std::ranges::max_element(
        rows, {}, [](const TrainRow& row) { return std::pair(row.gpus, row.images_per_second); });
    return of_source(
        best.source,
        fmt::format("A step of {} on {} takes {} ms with {}: {} % efficiency, {} ms of communication "
                    "that computing does not hide.",
                    best.model, counted(best.gpus, "rank"), number(best.iteration_ms.median), best.algorithm,
                    percent(best.efficiency), number(best.exposed_comm_ms)));
  }

  std::optional<ReportFinding> operator()(const std::vector<ScaleRow>& rows) const {
    if (rows.empty()) return std::nullopt;
    if (std::ranges::any_of(rows, is_published_run))
      return of_source(Source::modelled, published_runs_finding(rows));
    return of_scaling(rows);
  }

  std::optional<ReportFinding> operator()(const std::vector<TuneRow>& rows) const {
    if (rows.empty()) return std::nullopt;
    const auto chosen = std::ranges::count(rows, true, &TuneRow::other_chosen);
    return of_source(rows.front().source,
                     fmt::format("Tuning: another plan than the default is faster at {} of {}.", chosen,
                                 counted(static_cast<std::int64_t>(rows.size()), "size")));
  }

  std::optional<ReportFinding> operator()(const std::vector<CheckRow>& rows) const {
    ReportFinding finding{level_of(overall(rows)), "", summary(rows)};
    const std::size_t colon = finding.text.find(": ");
    finding.word = finding.text.substr(0, colon);
    finding.text = finding.text.substr(colon + 2);
    if (section.result.partial) {
      finding.text =
          fmt::format("The run ended after {}. Of what it judged: {}", *section.result.partial, finding.text);
      if (finding.level == "pass") {
        finding.level = "doubt";
        finding.word = "INCOMPLETE";
      }
    }
    std::map<std::string, int> of_check;  // so that one with many failures does not hide the others
    for (const CheckRow& row : worst_first(rows)) {
      if (row.verdict == Verdict::pass || !is_judgement(row.verdict) || is_explained(row, rows)) continue;
      if (finding.reasons.size() < kMostReasons && ++of_check[row.check] <= kMostOfCheck)
        finding.reasons.push_back(row);
      else
        ++finding.more_reasons;
    }
    return finding;
  }
};

}  // namespace

std::vector<ReportFinding> findings_of(std::span<const ReportSection> sections) {
  const auto is_judged = [](const ReportSection& section) {
    return std::holds_alternative<std::vector<CheckRow>>(section.result.rows);
  };
  const bool several = std::ranges::count_if(sections, is_judged) > 1;
  std::vector<ReportFinding> findings;
  for (const ReportSection& section : sections) {
    auto finding = wrong_finding(section);
    if (!finding && is_of_software_gpu(section.result) && !is_judged(section)) {
      finding = of_source(Source::emulated,
                          section.name + ": its GPUs are software for tests, so its times say nothing.");
    } else if (!finding) {
      finding = std::visit(FindingOf{section}, section.result.rows);
      if (finding && several && is_judged(section))
        finding->text = fmt::format("{}: {}", section.name, finding->text);
    }
    if (finding) findings.push_back(*finding);
  }
  const auto weight = [](const ReportFinding& finding) {
    constexpr std::array<std::string_view, 4> kOrder{"fail", "doubt", "pass", "none"};
    return std::ranges::find(kOrder, finding.level) - kOrder.begin();
  };
  std::ranges::stable_sort(findings, {}, weight);
  return findings;
}

}  // namespace polyring
