#include "bench/scaling.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "collectives/catalogue.hpp"
#include "reports/published.hpp"
#include "simulation/price.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/error.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

struct ModelledStep {
  Step step;
  Plan plan;
  int nodes = 1;
};

Count largest_of(const std::vector<Bucket>& buckets) {
  Count largest = 0;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.elements);
  return largest;
}

Bytes bytes_of(Count count, int size) {
  return {static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size)};
}

/// How one algorithm reduces buckets on a cluster.
struct Reducer {
  Plan plan;  // for the largest bucket
  std::function<Seconds(Count)> time;
};

Reducer reducer_of(const std::string& algorithm, const Cluster& cluster, const Router& router, Count largest,
                   int size, const PlanWishes& wishes) {
  if (is_vendor(algorithm)) {
    return {vendor_run(algorithm, cluster, bytes_of(largest, size)).plan, [&, algorithm, size](Count count) {
              const Bytes payload = bytes_of(count, size);
              return vendor_time(vendor_run(algorithm, cluster, payload), payload);
            }};
  }
  const Plan plan = price_plans(algorithm, cluster, router, largest, size, wishes).front().plan;
  check_plan(plan, cluster.ranks());
  return {plan, [&, plan, size](Count count) {
            return price(make_schedule(plan, cluster.ranks(), count, size), cluster, router, size).time;
          }};
}

ModelledStep model_step(const ScalingCase& scaling, const std::string& algorithm, const PlanWishes& wishes,
                        int gpus) {
  const Cluster cluster = with_ranks(scaling.machine, gpus);
  const Router router(cluster);
  const int size = size_of(scaling.kind);
  const std::vector<Bucket> buckets = make_buckets(scaling.model, scaling.policy, size);
  const Reducer reducer = reducer_of(algorithm, cluster, router, largest_of(buckets), size, wishes);

  ModelledStep result;
  result.nodes = cluster.host_count();
  result.plan = reducer.plan;
  std::map<Count, Seconds> times;  // many gradients of a model are equally large
  result.step = run_step(scaling.compute, buckets, scaling.overlap, [&](std::size_t i) {
    const Count count = buckets[i].elements;
    const auto known = times.find(count);
    if (known != times.end()) return known->second;
    return times[count] = reducer.time(count);
  });
  return result;
}

void refuse_unknown_links(const ScalingCase& scaling) {
  const int most = *std::max_element(scaling.gpus.begin(), scaling.gpus.end());
  const std::string unknown = unknown_speed(with_ranks(scaling.machine, most));
  if (!unknown.empty()) {
    usage_error("{}, so nothing can be predicted; use --machine, or fill it in in the JSON of polyring probe",
                unknown);
  }
}

}  // namespace

std::vector<ScaleRow> model_scaling(const ScalingCase& scaling, const std::string& algorithm,
                                    const PlanOptions& options) {
  refuse_unknown_links(scaling);
  const int host_gpus = scaling.machine.host(0).ranks();
  const auto images_per_second = [&](const ModelledStep& modelled, int gpus) {
    return gpus * scaling.batch / modelled.step.total().value;
  };
  // Dimensions that were asked for are for one count only, and never for the baseline.
  const PlanWishes wishes = is_vendor(algorithm) ? PlanWishes{} : options.wishes(algorithm);
  PlanWishes free = wishes;
  free.dims.clear();
  free.patterns.clear();
  const double host_images = images_per_second(model_step(scaling, algorithm, free, host_gpus), host_gpus);
  const PublishedScaling* published = find_published(scaling.name, scaling.model.name, algorithm);

  std::vector<ScaleRow> rows;
  for (const int gpus : scaling.gpus) {
    const ModelledStep modelled = model_step(scaling, algorithm, wishes, gpus);
    ScaleRow row;
    row.machine = scaling.name;
    row.model = scaling.model.name;
    row.algorithm = algorithm;
    row.dims = dims_text(modelled.plan.dims);
    row.lanes = modelled.plan.lanes;
    row.chunk_bytes = modelled.plan.chunk.value;
    row.gpus = gpus;
    row.nodes = modelled.nodes;
    row.batch = scaling.batch;
    row.bucket = to_text(scaling.policy);
    row.overlap = scaling.overlap;
    row.iteration_ms = modelled.step.total().value * 1e3;
    row.images_per_second = images_per_second(modelled, gpus);
    row.speedup = row.images_per_second / host_images;
    row.efficiency = row.speedup * host_gpus / gpus;
    row.exposed_comm_ms = modelled.step.exposed_communication().value * 1e3;
    if (const PublishedPoint* point = find_point(published, gpus)) {
      row.published_speedup = point->speedup;
      row.published_efficiency = point->efficiency;
    }
    row.source = Source::modelled;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Citation> vendor_inputs(const ScalingCase& scaling, const std::string& algorithm) {
  const int most = *std::max_element(scaling.gpus.begin(), scaling.gpus.end());
  const int size = size_of(scaling.kind);
  const Count largest = largest_of(make_buckets(scaling.model, scaling.policy, size));
  return vendor_run(algorithm, with_ranks(scaling.machine, most), bytes_of(largest, size)).inputs;
}

}  // namespace polyring
