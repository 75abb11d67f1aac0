#include "bench/predict/from_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "bench/record/run_cluster.hpp"

namespace polyring {
namespace {

void check_rows(const std::vector<TrainRow>& rows, const TrainRow& first, const std::string& file) {
  for (const TrainRow& row : rows) {
    if (row.source != Source::measured && row.source != Source::emulated)
      usage_error("'{}' has {} steps; give measured ones", file, to_text(row.source));
    if (row.compute_ms <= 0 || row.images_per_second <= 0 || row.efficiency <= 0)
      usage_error("'{}' is damaged: its steps take no time; run polyring train again", file);
    const bool same = row.model == first.model && row.batch == first.batch && row.bucket == first.bucket &&
                      row.overlap == first.overlap && row.compute_ms == first.compute_ms;
    if (!same) {
      usage_error(
          "'{}' and the files before it are not of one model, batch, computing time, bucket policy and "
          "overlap; give runs that differ in their hosts alone",
          file);
    }
  }
}

std::vector<TrainRow> rows_of(const ResultFile& result, const std::string& file) {
  const auto* rows = std::get_if<std::vector<TrainRow>>(&result.rows);
  if (rows == nullptr)
    usage_error("'{}' is a result of polyring {}; give one of polyring train", file, result.kind());
  if (rows->empty()) usage_error("'{}' has no rows; run polyring train again", file);
  return *rows;
}

/// The hosts, which must be equal: more of them are to be modelled.
Cluster equal_hosts(const ResultFile& result, const std::string& file) {
  Cluster cluster = cluster_of_run(result, file);
  if (cluster.groups.size() != 1) {
    usage_error(
        "'{}': its hosts differ, so it does not say what further hosts would be; use a run on equal hosts",
        file);
  }
  return cluster;
}

/// Of a rank alone, as it was measured in each run: what modelled rows must start from for the measured ones
/// to be their continuation.
Seconds step_alone(const std::vector<TrainRow>& rows) {
  double sum = 0;
  for (const TrainRow& row : rows) sum += row.efficiency * row.iteration_ms.median * 1e-3;
  return {sum / static_cast<double>(rows.size())};
}

}  // namespace

MeasuredTraining measured_training(const std::vector<std::string>& files) {
  MeasuredTraining training;
  ScalingCase& scaling = training.scaling;
  for (const std::string& file : files) {
    const ResultFile result = read_result(file);
    const std::vector<TrainRow> rows = rows_of(result, file);
    if (scaling.measured.empty()) {
      for (const Input& input : result.inputs)
        if (input.name == "computation per step") training.compute_source = input.source;
    }
    scaling.measured.insert(scaling.measured.end(), rows.begin(), rows.end());
    check_rows(rows, scaling.measured.front(), file);
    Cluster cluster = equal_hosts(result, file);
    if (scaling.machine.groups.empty() || cluster.ranks() > scaling.machine.ranks())
      scaling.machine = std::move(cluster);
  }
  const TrainRow& first = scaling.measured.front();
  scaling.name = first.machine;
  scaling.model = make_model(first.model);
  scaling.compute = compute_of(scaling.model, step_alone(scaling.measured));
  training.compute_source += fmt::format(", {} as measured", to_text(scaling.compute.total()));
  scaling.batch = first.batch;
  scaling.policy = parse_bucket_policy(first.bucket);
  scaling.overlap = first.overlap;
  for (const TrainRow& row : scaling.measured) {
    const bool known = std::count(training.algorithms.begin(), training.algorithms.end(), row.algorithm) > 0;
    if (!row.dims.empty() && !known) training.algorithms.push_back(row.algorithm);
  }
  if (training.algorithms.empty()) {
    usage_error(
        "{} only steps of vendors' allreduces, which are not modelled; run polyring train with "
        "--algorithm multi-ring",
        files.size() == 1 ? fmt::format("'{}' has", files.front()) : "these files have");
  }
  return training;
}

std::string note_of(const MeasuredTraining& training, const std::vector<std::string>& files) {
  std::set<int> counts;
  for (const TrainRow& row : training.scaling.measured) counts.insert(row.gpus);
  return fmt::format("Measured: on {} ranks ({}); other counts are modelled from them.",
                     fmt::join(counts, ", "), fmt::join(files, ", "));
}

}  // namespace polyring
