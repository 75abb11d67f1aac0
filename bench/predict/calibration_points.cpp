#include "bench/predict/calibration_points.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/record/run_cluster.hpp"
#include "collectives/schedule/element.hpp"

namespace polyring {
namespace {

MeasuredPoint point_of(const CollectiveRow& row, const Cluster& cluster) {
  MeasuredPoint point;
  point.cluster = cluster;
  point.plan = {row.algorithm, parse_dims(row.dims), split(row.patterns, '+'), row.lanes, {row.chunk_bytes}};
  if (row.orders) point.plan.orders = parse_orders(*row.orders);
  check_plan(point.plan, cluster.ranks());
  point.count = static_cast<Count>(row.count);
  point.element_size = size_of(parse_element_kind(row.dtype));
  point.time = microseconds(row.time_us.median);
  point.name = fmt::format("{} of {}{}", row.algorithm, to_text(Bytes{row.size_bytes}),
                           row.in_place ? " in place" : "");
  return point;
}

/// Refuses results of software GPUs, and results that do not say which GPU each rank had.
void check_gpus(const ResultFile& result, const std::string& file) {
  if (!result.versions.contains("gpu")) return;
  if (is_of_software_gpu(result)) {
    usage_error(
        "'{}' was made on GPUs that are software for tests, whose times say nothing; give runs on real ones",
        file);
  }
  if (!on_gpus(result.placement))
    usage_error("'{}' does not say which GPU each rank had; run it again with this polyring", file);
}

/// Whether its time is that of messages on links. Where the host orders the steps of GPUs, each waits for it.
bool is_of_links(const CollectiveRow& row, DataDevice device) {
  if (row.dims.empty() || row.time_us.median <= 0 || row.count == 0) return false;
  return device == DataDevice::cpu || row.implementation.starts_with(kOnStreams);
}

}  // namespace

MeasuredRun measured_run(const std::filesystem::path& path, const ResultFile& result) {
  MeasuredRun run;
  run.file = path.string();
  const auto* rows = std::get_if<std::vector<CollectiveRow>>(&result.rows);
  if (rows == nullptr || result.kind() != "allreduce") {
    usage_error("'{}' is a result of polyring {}; give results of polyring allreduce", run.file,
                result.kind());
  }
  check_gpus(result, run.file);
  if (on_gpus(result.placement)) run.device = DataDevice::cuda;
  const Cluster cluster = cluster_of_run(result, run.file);
  for (const CollectiveRow& row : *rows) {
    if (row.source != Source::measured && row.source != Source::emulated)
      usage_error("'{}' has {} times; give measured ones", run.file, to_text(row.source));
    if (row.timing.value_or(TimingMethod::isolated) != TimingMethod::isolated) {
      usage_error("'{}' was timed with --timing {}, and the model is of isolated calls; measure without it",
                  run.file, to_text(*row.timing));
    }
    run.source = row.source;
    if (is_of_links(row, run.device)) run.points.push_back(point_of(row, cluster));
  }
  const bool gpus = run.device == DataDevice::cuda;
  if (run.points.empty() && gpus) {
    usage_error(
        "'{}' has no time of an algorithm of polyring on the streams of GPUs, only of vendors' calls or of "
        "steps that the host ordered; run one, as with --algorithm multi-ring,ring, where GPUs reach each "
        "other or NCCL is",
        run.file);
  }
  if (run.points.empty()) {
    usage_error(
        "'{}' has no time of an algorithm of polyring, only of vendors' calls; run one, as with "
        "--algorithm multi-ring,ring",
        run.file);
  }
  run.where =
      counted(cluster.ranks(), gpus ? "GPU" : "rank") + " on " + counted(cluster.host_count(), "host");
  return run;
}

}  // namespace polyring
