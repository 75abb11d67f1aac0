// A data-parallel training step on so many GPUs: its allreduces are simulated once, and the step is then
// timed for any value of what is not exactly known.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/predict/scaling.hpp"
#include "models/framework.hpp"

namespace polyring {

Bytes bytes_of(Count count, int element_size);
Count largest_of(const std::vector<Bucket>& buckets);

/// What is not exactly known of a step's time.
struct StepRanges {
  std::vector<CostRange> ranges;  // empty where the case is ideal
  /// What StepCosts::network is a part of, as bus bandwidth; nothing: of the simulated rate.
  std::optional<Bandwidth> usable{};
  std::optional<Bandwidth> usable_inside{};  // likewise of StepCosts::inside
};

/// Where the case's strategy divides the model, with what that adds.
StepRanges step_ranges(const ScalingCase& scaling, const std::string& algorithm, const Cluster& cluster);

/// What copying all gradients into buckets and back takes.
Seconds copies_of(const ScalingCase& scaling, const StepCosts& costs);

class StepModel {
 public:
  /// Throws as choose_plan() and vendor_run() do.
  StepModel(const ScalingCase& scaling, const std::string& algorithm, const PlanConstraints& constraints,
            int gpus);

  int nodes() const { return nodes_; }
  const Plan& plan() const { return plan_; }  // for the largest bucket
  const std::string& bottleneck() const { return bottleneck_; }

  const std::vector<CostRange>& ranges() const { return known_.ranges; }

  /// The step with these costs; among stragglers and waiting for samples as the case's conditions say.
  StepTime time(const StepCosts& costs) const;
  /// Samples per second of all GPUs.
  double throughput(const StepCosts& costs) const;

 private:
  StepCompute computing(const StepCosts& costs) const;
  Seconds allreduce(std::size_t bucket, const StepCosts& costs) const;

  const ScalingCase& scaling_;
  int gpus_;
  int nodes_ = 1;
  int element_size_ = 0;
  Plan plan_;
  std::string bottleneck_;
  std::vector<Bucket> buckets_;
  std::vector<Seconds> simulated_;  // of each bucket's allreduce
  StepRanges known_;
};

/// A figure that is not below 0, and how far it can be off. Each cost is moved to both ends of its range by
/// itself; the differences to the middle, upwards and downwards apart, are added as independent errors are,
/// by their squares.
struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
  std::string widest;  // the cost that moves it furthest; empty without ranges
};

Interval interval_of(const std::vector<CostRange>& ranges,
                     const std::function<double(const StepCosts&)>& figure);

}  // namespace polyring
