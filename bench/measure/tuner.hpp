// Tuner: finds a plan for one payload by measuring many, and says whether it beats the default plan.
//
// As DDL's exploration mode does, it goes dimension by dimension: another pattern for each, as long as that
// helps, then lanes and chunks for the best two. All are measured briefly, in turns with the default plan.
// The best four meet again for longer, and the winner of these meets the default plan in a final with fresh
// samples, so that having been picked for its luck does not help it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.hpp"
#include "bench/measure/measure.hpp"
#include "collectives/runtime/transport.hpp"
#include "collectives/schedule/plan.hpp"

namespace polyring {

struct TunerResult {
  Plan challenger;
  // Medians of an allreduce out of place and one in place, on average, in microseconds.
  double default_us = 0;
  double challenger_us = 0;
  Ratio ratio;  // default / challenger
  std::size_t tried = 0;

  /// The challenger is faster beyond the interval.
  bool better() const { return ratio.coverage >= 0.95 && ratio.ci_low > 1; }
};

class Tuner {
 public:
  /// With buffers.
  using Make = std::function<Contender(const Plan&)>;
  using Show = std::function<void(const std::string&)>;
  /// What a rank holds for a plan beside the payload.
  using Held = std::function<Bytes(const Plan&, Count)>;

  /// `iterations` of the final; 0: about half a second of each.
  Tuner(const Job& job, int iterations, Show show, Held held)
      : job_(job), iterations_(iterations), show_(std::move(show)), held_(std::move(held)) {}

  /// Collective, for float32 and sum. The first of `starts` is the default plan, the others are of other
  /// dimensions; all name their patterns. Nothing when a result was wrong: see wrong().
  std::optional<TunerResult> tune(Count count, const std::vector<Plan>& starts, const Make& make);

  /// What the plans of one round may hold beside the default plan. One that alone holds more is not tried.
  static Bytes round_memory(Count count);

  /// A sentence for each plan whose result was wrong.
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  struct Tried {
    Plan plan;
    double speed = 1;  // the default plan's time over this one's
  };

  void search(const std::vector<Plan>& starts);
  void try_all(const std::vector<Plan>& plans);
  bool known(const Plan& plan) const;
  /// How many of the plans, from the first on, may be in one round; 0 when the first alone holds too much.
  /// Collective: what the rank that needs most holds counts.
  std::size_t fitting(std::span<const Plan> plans) const;
  /// Those tried so far, the fastest first; at most so many.
  std::vector<Plan> best(std::size_t most) const;
  /// The speeds of the plans beside the default's, as in Tried; empty after a wrong result.
  std::vector<double> speeds(std::span<const Plan> plans, const StoppingRule& stop);
  std::vector<Samples> measure_all(std::span<const Plan> plans, bool in_place, const StoppingRule& stop);
  std::optional<TunerResult> final_against(const Plan& challenger);

  Job job_;
  int iterations_;
  Show show_;
  Held held_;
  std::vector<std::string> wrong_;

  // Of the payload in hand.
  Count count_ = 0;
  Bytes payload_;
  const Make* make_ = nullptr;
  std::vector<Tried> tried_;  // the default plan first
};

/// What an allreduce of such a plan holds of this transport's memory.
Tuner::Held held_by_executors(const Transport& transport);

}  // namespace polyring
