// A scaling table on uniform links, where closed forms are known.
#pragma once

#include <string>

#include "bench/predict/scaling.hpp"
#include "tests/simulation/clusters.hpp"

namespace polyring::testing {

/// `hosts` hosts of 4 GPUs train `model`, whose steps compute for `compute_ms` at `batch` images per GPU.
inline ScalingCase uniform_case(const std::string& model, int hosts, double compute_ms, int batch) {
  ScalingCase scaling;
  scaling.machine = uniform(hosts, 4);
  for (Link& link : scaling.machine.groups.front().machine.links)
    if (!link.bandwidth.known()) link.bandwidth = {1e18};  // the way to the NIC, which is never the limit
  scaling.name = "uniform";
  scaling.model = make_model(model);
  scaling.compute = compute_of(scaling.model, {compute_ms * 1e-3});
  scaling.batch = batch;
  return scaling;
}

}  // namespace polyring::testing
