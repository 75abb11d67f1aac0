#include "bench/accept/acceptance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>

#include "base/error.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

CheckRow row_about(const Checking& checking, const Check& check, Verdict verdict, std::string why,
                   std::string remedy) {
  CheckRow row = row_of(checking, check.name, {});
  row.subject.clear();
  row.verdict = verdict;
  row.why = std::move(why);
  row.remedy = std::move(remedy);
  return row;
}

/// Fails closed: what was asked for and is skipped is missing.
void settle(std::vector<CheckRow>& rows, const PlannedCheck& planned) {
  for (CheckRow& row : rows)
    if (planned.asked_for && row.verdict == Verdict::skipped) row.verdict = Verdict::missing;
}

/// Rows of collectives on GPUs. Of those that are software the results count, and the rates do not.
void tell_device(std::vector<CheckRow>& rows, const CheckOptions& options) {
  for (CheckRow& row : rows) {
    row.device = to_text(options.device);
    if (!options.software_gpus) continue;
    row.source = Source::emulated;
    if (row.verdict != Verdict::missing || !row.value) continue;
    row.verdict = Verdict::shown;
    row.why = "The results were right. The GPUs are software for tests, whose rates are not judged.";
    row.remedy.clear();
  }
}

int turns_of(std::span<const PlannedCheck> planned, const Site& site, const CheckOptions& options) {
  int turns = 0;
  for (const PlannedCheck& one : planned)
    if (one.judged.empty()) turns += one.check->turns(site, options);
  return turns;
}

/// What the hosts answer before the first check, of the checks that want to see what changes.
std::map<const Check*, std::vector<HostReply>> ask_first(const std::vector<PlannedCheck>& planned,
                                                         Measurer& measurer) {
  std::map<const Check*, std::vector<HostReply>> before;
  for (const PlannedCheck& one : planned)
    if (one.check->asks_first && one.judged.empty())
      before[one.check] = measurer.ask(std::string(one.check->name), "");
  return before;
}

}  // namespace

Seconds turn_in(Seconds budget, const std::vector<PlannedCheck>& planned, const Site& site,
                const CheckOptions& options) {
  constexpr double kUsualTurn = 1;
  constexpr double kLeastTurn = 0.2;
  constexpr double kMostTurn = 5;
  // The rest is for what is measured again, and for connections.
  constexpr double kFirstMeasurements = 0.4;
  if (budget.value == 0) return {kUsualTurn};
  const int turns = turns_of(planned, site, options);
  return {std::clamp(kFirstMeasurements * budget.value / std::max(1, turns), kLeastTurn, kMostTurn)};
}

ExitCode run_checks(const std::vector<PlannedCheck>& planned, const Checking& checking, const Budget& budget,
                    const AcceptanceObserver& observer) {
  ExitCode failed = ExitCode::ok;
  const std::map<const Check*, std::vector<HostReply>> before = ask_first(planned, checking.measurer);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const PlannedCheck& one = planned[i];
    const Check& check = *one.check;
    const int behind = turns_of(std::span(planned).subspan(i + 1), checking.site, checking.options);
    Checking own = checking;
    own.has_time = [&](int turns) {
      return !budget.is_over({(turns + behind) * checking.options.turn.value});
    };
    std::vector<CheckRow> rows;
    observer.begins(check);
    const auto begin = std::chrono::steady_clock::now();
    if (!one.judged.empty()) {
      rows = one.judged;
    } else if (budget.is_over() && check.turns(checking.site, checking.options) > 0) {
      rows = {row_about(checking, check, Verdict::skipped,
                        fmt::format("It did not fit into the budget of {}.", to_text(budget.total())),
                        "Give a larger --budget.")};
    } else {
      try {
        if (check.asks_first) own.before = before.at(&check);
        const bool on_gpus = check.on_device && checking.options.device == DataDevice::cuda;
        own.judges_rates = !on_gpus || !checking.options.software_gpus;
        rows = check.run(own);
        if (on_gpus) tell_device(rows, checking.options);
        // A row of what could not be done on a host.
        if (std::ranges::any_of(rows, [](const CheckRow& row) { return row.verdict == Verdict::error; }))
          failed = ExitCode::not_available;
      } catch (const Error& error) {
        failed = error.code();
        rows = {row_about(checking, check, Verdict::error, fmt::format("The check broke: {}.", error.what()),
                          "Mend what this names, and run this check again.")};
      }
    }
    if (rows.empty())
      rows = {row_about(checking, check, Verdict::missing, "It has found nothing to judge.",
                        "Report this as a fault.")};
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    for (CheckRow& row : rows)
      if (row.seconds == 0) row.seconds = took.count() / static_cast<double>(rows.size());
    settle(rows, one);
    observer.ended(std::move(rows));
  }
  return failed;
}

}  // namespace polyring
