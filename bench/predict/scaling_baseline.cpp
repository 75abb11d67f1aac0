#include "bench/predict/scaling_baseline.hpp"

namespace polyring {

ScalingBaseline::ScalingBaseline(const ScalingCase& scaling, const std::string& algorithm,
                                 const PlanOptions& options)
    : over_host_(scaling.baseline.host),
      host_gpus_(scaling.machine.host(0).ranks()),
      alone_(scaling.batch / scaling.compute.total().value),
      own_(scaling.baseline.algorithm.empty() || scaling.baseline.algorithm == algorithm) {
  if (!over_host_) return;
  const std::string& of_host = own_ ? algorithm : scaling.baseline.algorithm;
  for (const TrainRow& row : scaling.measured) {
    if (row.algorithm == of_host && row.gpus == host_gpus_) measured_ = row.images_per_second / host_gpus_;
  }
  if (measured_ > 0) return;
  // Dimensions that were asked for are for one count only, and never for the baseline.
  PlanConstraints free = options.constraints(of_host);
  free.dims.clear();
  free.patterns.clear();
  at_host_ = with_share(scaling, host_gpus_);
  host_.emplace(at_host_, of_host, free, host_gpus_);
}

double ScalingBaseline::of_gpu(const StepCosts& costs, int row_gpus) const {
  if (!over_host_) return alone_ / costs.computing;
  if (!host_) return measured_;
  StepCosts of_host = costs;
  // Other links carry its allreduces: how well they are used is no matter of the row's.
  if (row_gpus != host_gpus_ || !own_) of_host.network = middle_of(host_->ranges()).network;
  return host_->throughput(of_host) / host_gpus_;
}

double ScalingBaseline::of_gpu() const {
  return of_gpu(host_ ? middle_of(host_->ranges()) : StepCosts{}, host_gpus_);
}

}  // namespace polyring
