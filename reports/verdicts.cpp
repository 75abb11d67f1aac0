#include "reports/verdicts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.hpp"

namespace polyring {
namespace {

/// From the worst to the best.
constexpr std::array kByWeight{Verdict::fail,    Verdict::error, Verdict::missing, Verdict::inconclusive,
                               Verdict::skipped, Verdict::shown, Verdict::pass};

std::size_t weight(Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::find(kByWeight, verdict) - kByWeight.begin());
}

bool is_good(Verdict verdict) { return verdict == Verdict::pass || !is_judgement(verdict); }

/// At most so many, and how many more there are.
std::string list_of(std::vector<std::string> names, std::size_t most) {
  const std::size_t all = names.size();
  if (all > most) names.resize(most);
  return fmt::format("{}{}", fmt::join(names, "; "),
                     all > most ? fmt::format("; and {} more", all - most) : "");
}

bool has_any(const std::vector<std::string>& names, const std::vector<std::string>& of) {
  return std::ranges::find_first_of(names, of) != names.end();
}

/// Without those that another row explains.
std::vector<const CheckRow*> rows_with(std::span<const CheckRow> rows, Verdict verdict) {
  std::vector<const CheckRow*> found;
  for (const CheckRow& row : rows)
    if (row.verdict == verdict && !is_explained(row, rows)) found.push_back(&row);
  return found;
}

std::string named(const CheckRow& row) {
  return row.subject.empty() ? row.check : fmt::format("{} of {}", row.check, row.subject);
}

/// What follows "3 of 31 checks …".
std::string_view did(Verdict verdict) {
  switch (verdict) {
    case Verdict::fail:
      return "failed";
    case Verdict::error:
      return "broke";
    case Verdict::missing:
      return "were not measured";
    case Verdict::inconclusive:
      return "were inconclusive";
    case Verdict::skipped:
      return "were skipped";
    case Verdict::shown:
      return "are shown";
    case Verdict::pass:
      return "passed";
  }
  return "";
}

}  // namespace

CheckRow row_of_dead_rank(int rank, const std::string& host) {
  CheckRow row;
  row.check = kRanksAlive;
  row.subject = fmt::format("rank {} on {}", rank, host);
  row.hosts = {host};
  row.verdict = Verdict::fail;
  row.why = "Its process ended while the others went on.";
  row.remedy = "Check this host: its system's log, memory, GPU and power.";
  return row;
}

std::vector<std::vector<CheckRow>> by_check(std::span<const CheckRow> rows) {
  std::vector<std::vector<CheckRow>> checks;
  for (const CheckRow& row : rows) {
    auto at =
        std::ranges::find_if(checks, [&](const auto& check) { return check.front().check == row.check; });
    if (at == checks.end()) at = checks.insert(checks.end(), std::vector<CheckRow>{});
    at->push_back(row);
  }
  return checks;
}

void complete(ResultFile& result, const std::string& why) {
  auto* const rows = std::get_if<std::vector<CheckRow>>(&result.rows);
  if (rows == nullptr || !result.partial) return;
  bool first = true;
  const Source same = rows->empty() ? Source::measured : rows->front().source;
  for (const Input& input : result.inputs) {
    if (input.name != kPlannedCheck) continue;
    if (std::ranges::find(*rows, input.value, &CheckRow::check) != rows->end()) continue;
    CheckRow row;
    row.check = input.value;
    row.verdict = first ? Verdict::error : Verdict::missing;
    row.why = first ? fmt::format("The job ended while this ran{}{}.", why.empty() ? "" : ": ", why)
                    : "The job ended before this ran.";
    row.remedy = first ? "See why the job ended, and run this check again." : "Run it again.";
    row.source = same;
    rows->push_back(std::move(row));
    first = false;
  }
  if (overall(*rows) != Verdict::pass) return;
  CheckRow& row = rows->emplace_back();
  row.check = "job";
  row.verdict = Verdict::error;
  row.why = fmt::format("It ended before its result was written{}{}.", why.empty() ? "" : ": ", why);
  row.remedy = "See why it ended, and run it again.";
  row.source = same;
}

bool is_explained(const CheckRow& row, std::span<const CheckRow> rows) {
  // Of rails, too, hosts and all of them are judged; one rail explains nothing of another.
  if (row.check != "pairs.allreduce" || row.quantity.empty()) return false;
  // What has no quantity was found by what pairs measured: of a host, of a leaf's uplinks, or of all hosts.
  return std::ranges::any_of(rows, [&](const CheckRow& other) {
    return other.quantity.empty() && other.verdict == row.verdict && other.check == row.check &&
           has_any(row.hosts, other.hosts);
  });
}

std::string verdict_text(Verdict verdict) {
  std::string text(to_text(verdict));
  if (is_good(verdict)) return text;
  std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  return text;
}

std::vector<CheckRow> worst_first(std::span<const CheckRow> rows) {
  std::vector<CheckRow> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(sorted, {}, [](const CheckRow& row) { return weight(row.verdict); });
  return sorted;
}

Verdict overall(std::span<const CheckRow> rows) {
  Verdict worst = Verdict::pass;
  bool judged = false;
  for (const CheckRow& row : rows) {
    if (!is_judgement(row.verdict)) continue;
    judged = true;
    if (weight(row.verdict) < weight(worst)) worst = row.verdict;
  }
  return judged ? worst : Verdict::missing;
}

ExitCode exit_code(std::span<const CheckRow> rows, ExitCode of_errors) {
  switch (overall(rows)) {
    case Verdict::fail:
      return ExitCode::below_threshold;
    case Verdict::error:
      return of_errors == ExitCode::ok ? ExitCode::not_available : of_errors;
    case Verdict::pass:
      return ExitCode::ok;
    default:
      return ExitCode::inconclusive;
  }
}

std::string summary(std::span<const CheckRow> rows) {
  const Verdict verdict = overall(rows);
  const auto judged = static_cast<std::int64_t>(
      std::ranges::count_if(rows, [](const CheckRow& row) { return is_judgement(row.verdict); }));
  if (judged == 0) return "MISSING: nothing was judged.";
  if (verdict == Verdict::pass) return fmt::format("PASS: all {} passed.", counted(judged, "judgement"));
  std::vector<std::string> names;
  for (const CheckRow* row : rows_with(rows, verdict)) names.push_back(named(*row));
  std::string others;
  for (const Verdict other : kByWeight) {
    const std::size_t count = rows_with(rows, other).size();
    if (other != verdict && !is_good(other) && count > 0)
      others += fmt::format(" {} more {}.", count, did(other));
  }
  constexpr std::size_t kMostNamed = 6;
  return fmt::format("{}: {} of {} {}: {}.{}", verdict_text(verdict), names.size(),
                     counted(judged, "judgement"), did(verdict), list_of(names, kMostNamed), others);
}

std::vector<std::string> findings(std::span<const CheckRow> rows) {
  constexpr int kMostOfCheck = 6;
  std::vector<std::string> lines;
  for (const Verdict verdict : kByWeight) {
    if (verdict == Verdict::pass) continue;
    std::map<std::string, int> of_check;
    for (const CheckRow* row : rows_with(rows, verdict)) {
      if (++of_check[row->check] > kMostOfCheck) continue;
      lines.push_back(fmt::format("{}  {}{}{}: {}{}{}", verdict_text(verdict), row->check,
                                  row->subject.empty() ? "" : ", ", row->subject, row->why,
                                  row->remedy.empty() ? "" : " ", row->remedy));
    }
    for (const auto& [check, count] : of_check)
      if (count > kMostOfCheck)
        lines.push_back(fmt::format("{}  {}: {} more", verdict_text(verdict), check, count - kMostOfCheck));
  }
  return lines;
}

std::string slurm_drain_list(std::span<const CheckRow> rows) {
  std::map<std::string, std::string> reasons;  // by host
  std::vector<std::string> order;
  for (const CheckRow* row : rows_with(rows, Verdict::fail)) {
    // What is between two hosts, or about all of them, is no reason to take one of them away.
    if (row->hosts.size() != 1) continue;
    const auto [at, fresh] = reasons.emplace(row->hosts.front(), row->check);
    if (fresh)
      order.push_back(row->hosts.front());
    else if (at->second.find(row->check) == std::string::npos)
      at->second += ", " + row->check;
  }
  std::string text;
  for (const std::string& host : order)
    text += fmt::format("scontrol update NodeName={} State=DRAIN Reason=\"polyring: {}\"\n", host,
                        reasons.at(host));
  return text;
}

NagiosStatus nagios_status(std::span<const CheckRow> rows) {
  const Verdict verdict = overall(rows);
  const auto passed = static_cast<std::size_t>(std::ranges::count(rows, Verdict::pass, &CheckRow::verdict));
  const auto count = [&](Verdict of) { return rows_with(rows, of).size(); };
  std::string text = summary(rows);
  std::ranges::replace(text, '|', '/');  // what follows a bar is performance data
  text +=
      fmt::format(" | passed={} failed={} errors={} inconclusive={} missing={}", passed, count(Verdict::fail),
                  count(Verdict::error), count(Verdict::inconclusive), count(Verdict::missing));
  if (verdict == Verdict::pass) return {"POLYRING OK - " + text, 0};
  if (verdict == Verdict::fail) return {"POLYRING CRITICAL - " + text, 2};
  return {"POLYRING UNKNOWN - " + text, 3};
}

}  // namespace polyring
