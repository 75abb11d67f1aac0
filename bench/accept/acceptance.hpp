// Runs the checks of `polyring accept`, one after the other, and keeps what they find.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "bench/accept/check.hpp"

namespace polyring {

/// A check that is to run, and who wants it.
struct PlannedCheck {
  const Check* check = nullptr;
  bool asked_for = false;          // by name: then it must not be skipped
  std::vector<CheckRow> judged{};  // by an earlier run: then it is not run again
};

/// What is done with each check's rows as soon as they are there.
struct AcceptanceObserver {
  std::function<void(const Check&)> begins;
  std::function<void(std::vector<CheckRow>)> ended;
};

/// Time that is left of a budget.
class Budget {
 public:
  /// No limit where `total` is 0.
  explicit Budget(Seconds total, std::function<Seconds()> elapsed)
      : total_(total), elapsed_(std::move(elapsed)) {}
  /// Whether no more is left than what is kept for something else.
  bool is_over(Seconds kept = {}) const {
    return total_.value > 0 && elapsed_().value + kept.value >= total_.value;
  }
  Seconds total() const { return total_; }

 private:
  Seconds total_;
  std::function<Seconds()> elapsed_;
};

/// How long a measurement may take, so that all of these fit into the budget, from kLeastTurn to kMostTurn;
/// kUsualTurn without a budget.
Seconds turn_in(Seconds budget, const std::vector<PlannedCheck>& planned, const Site& site,
                const CheckOptions& options);

/// On rank 0. Runs them in their order; what measures again leaves time for the checks behind it. A check
/// that throws an Error has a row that says so, and the others go on. Returns the exit code of the last that
/// did, or that has a row of an error; ok: none has.
ExitCode run_checks(const std::vector<PlannedCheck>& planned, const Checking& checking, const Budget& budget,
                    const AcceptanceObserver& observer);

}  // namespace polyring
