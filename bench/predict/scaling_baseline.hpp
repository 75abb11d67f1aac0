// What the rows of a scaling table are compared with: one GPU that computes alone, or one whole host.
#pragma once

#include <optional>
#include <string>

#include "bench/predict/step_model.hpp"

namespace polyring {

class ScalingBaseline {
 public:
  ScalingBaseline(const ScalingBaseline&) = delete;  // its model refers to its case
  ScalingBaseline& operator=(const ScalingBaseline&) = delete;

  /// Of rows of this algorithm, as scaling.baseline says. A host's row that was measured counts as it is.
  /// Throws as StepModel does.
  ScalingBaseline(const ScalingCase& scaling, const std::string& algorithm, const PlanOptions& options);

  int gpus() const { return over_host_ ? host_gpus_ : 1; }
  /// Samples per second of one of its GPUs, with costs as in a row of `row_gpus` GPUs.
  double of_gpu(const StepCosts& costs, int row_gpus) const;
  /// With its own costs, each in the middle of its range.
  double of_gpu() const;

 private:
  bool over_host_;
  int host_gpus_;
  double alone_;         // samples per second of a GPU that computes alone
  double measured_ = 0;  // of a GPU of a host; 0: nothing was measured
  bool own_ = true;      // the host's algorithm is the rows'
  ScalingCase at_host_;  // with the share of a host's GPUs
  std::optional<StepModel> host_;
};

}  // namespace polyring
