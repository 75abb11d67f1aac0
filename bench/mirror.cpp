#include "bench/mirror.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "bench/compute.hpp"
#include "bench/scaling.hpp"
#include "reports/published.hpp"
#include "reports/tables.hpp"
#include "topology/presets.hpp"

namespace polyring {
namespace {

/// With overlap gradients travel in buckets; this size is our choice, since none was published.
constexpr const char* kBucket = "fused:64MiB";

/// Facebook published the batch; its servers have one NIC.
std::vector<int> batches_of(std::string_view machine) {
  return machine == "big-basin" ? std::vector{32} : std::vector{32, 64};
}

std::vector<Combination> combinations(std::string_view machine) {
  std::vector<Combination> all;
  for (int rails = 1; rails <= rails_of(preset(machine, 1).host(0)); ++rails) {
    for (const bool overlap : {false, true}) {
      for (const int batch : batches_of(machine)) all.push_back({rails, overlap, batch});
    }
  }
  return all;
}

/// Facebook's allreduce reduces inside the server, exchanges by halving and doubling between servers and
/// spreads inside (arXiv:1706.02677, section 4): a multi-ring with these patterns.
PlanOptions plan_of(std::string_view algorithm, int gpus, int per_host) {
  PlanOptions plan;
  plan.algorithms = {"multi-ring"};
  if (algorithm == "halving-doubling" && gpus > per_host) {
    plan.dims = fmt::format("{}x{}", per_host, gpus / per_host);
    plan.patterns = {"ring", "halving"};
  }
  return plan;
}

Modelled model(std::string_view machine, std::string_view model, std::string_view algorithm,
               const std::vector<int>& gpus, const Combination& combination) {
  ScalingCase scaling;
  scaling.machine = preset(machine, 1);
  Machine& host = scaling.machine.groups.front().machine;
  host = with_rails(std::move(host), combination.rails);
  scaling.name = machine;
  scaling.model = make_model(model);
  scaling.batch = combination.batch;
  scaling.overlap = combination.overlap;
  scaling.policy = parse_bucket_policy(combination.overlap ? kBucket : "none");
  ComputeOptions compute;
  compute.batch = combination.batch;
  scaling.compute = compute.resolve(scaling.model, host.gpus.front().model).step;
  Modelled result{combination, {}};
  for (const int count : gpus) {
    scaling.gpus = {count};
    const auto rows = model_scaling(scaling, "multi-ring", plan_of(algorithm, count, host.ranks()));
    result.rows.insert(result.rows.end(), rows.begin(), rows.end());
  }
  return result;
}

void model_all(Mirror& mirror, std::string_view machine, std::string_view model_name,
               std::string_view algorithm) {
  std::vector<int> gpus;
  for (const PublishedFigure& figure : mirror.figures) {
    if (gpus.empty() || gpus.back() != figure.gpus) gpus.push_back(figure.gpus);
  }
  for (const Combination& combination : combinations(machine)) {
    mirror.modelled.push_back(model(machine, model_name, algorithm, gpus, combination));
  }
}

const ScaleRow& row_of(const Modelled& modelled, int gpus) {
  return *std::find_if(modelled.rows.begin(), modelled.rows.end(),
                       [&](const ScaleRow& row) { return row.gpus == gpus; });
}

std::string combination_text(const Combination& combination) {
  return fmt::format("{} rail{}, batch {}, {}", combination.rails, combination.rails == 1 ? "" : "s",
                     combination.batch, combination.overlap ? "overlap" : "no overlap");
}

/// Modelled, and by how much that is above the published figure.
std::string cell(const ScaleRow& row, const PublishedFigure& figure) {
  if (figure.efficiency) {
    return fmt::format("{:.1f} ({:+.1f})", 100 * row.efficiency, 100 * (row.efficiency - *figure.efficiency));
  }
  return fmt::format("{:.0f} ({:+.0f} %)", row.images_per_second,
                     100 * (row.images_per_second / *figure.images_per_second - 1));
}

Table table_of(const Mirror& mirror) {
  std::vector<Column> columns{{"", "", "", Align::left}};
  std::vector<std::string> published{"published"};
  for (const PublishedFigure& figure : mirror.figures) {
    const bool percent = figure.efficiency.has_value();
    columns.push_back(
        {fmt::format("{} GPUs", figure.gpus), figure.statement, percent ? "%" : "images/s", Align::right});
    published.push_back(percent ? fmt::format("{:.1f}", 100 * *figure.efficiency)
                                : fmt::format("{:.0f}", *figure.images_per_second));
  }
  Table table(std::move(columns));
  table.add_row(std::move(published));
  for (const Modelled& modelled : mirror.modelled) {
    std::vector<std::string> cells{"modelled: " + combination_text(modelled.combination)};
    for (const PublishedFigure& figure : mirror.figures)
      cells.push_back(cell(row_of(modelled, figure.gpus), figure));
    table.add_row(std::move(cells));
  }
  return table;
}

/// Of the published efficiencies, those between the least and the greatest of all combinations.
std::string range_text(const Mirror& mirror) {
  std::vector<std::string> outside;
  int efficiencies = 0;
  for (const PublishedFigure& figure : mirror.figures) {
    if (!figure.efficiency) continue;
    ++efficiencies;
    double least = 1;
    double most = 0;
    for (const Modelled& modelled : mirror.modelled) {
      least = std::min(least, row_of(modelled, figure.gpus).efficiency);
      most = std::max(most, row_of(modelled, figure.gpus).efficiency);
    }
    if (*figure.efficiency < least - kPublishedRounding || *figure.efficiency > most + kPublishedRounding) {
      outside.push_back(fmt::format("{} GPUs ({:.1f} to {:.1f} %)", figure.gpus, 100 * least, 100 * most));
    }
  }
  if (efficiencies == 0) return "";
  if (outside.empty()) return "Every published efficiency lies in the range of the combinations.\n";
  return fmt::format("Published efficiencies outside of the range of all combinations: {}.\n",
                     fmt::join(outside, ", "));
}

std::string agreement_text(const Mirror& mirror) {
  std::vector<std::string> inside;
  const Modelled* nearest = nullptr;
  Residual least;
  for (const Modelled& modelled : mirror.modelled) {
    const auto residual = worst_residual(mirror, modelled);
    if (!residual) return "";
    if (std::abs(residual->efficiency) <= kPublishedRounding)
      inside.push_back(combination_text(modelled.combination));
    if (nearest != nullptr && std::abs(residual->efficiency) >= std::abs(least.efficiency)) continue;
    nearest = &modelled;
    least = *residual;
  }
  return fmt::format(
      "Within the published rounding everywhere: {}. Nearest: {}, at most {:+.3f} off, at {} GPUs.\n",
      inside.empty() ? "none" : fmt::format("{}", fmt::join(inside, "; ")),
      combination_text(nearest->combination), least.efficiency, least.gpus);
}

}  // namespace

std::vector<Mirror> mirror_published() {
  std::vector<Mirror> mirrors;
  for (const PublishedScaling& series : published_scaling()) {
    Mirror& mirror = mirrors.emplace_back();
    mirror.system = series.system;
    mirror.source = series.source;
    for (const PublishedPoint& point : series.points)
      mirror.figures.push_back({point.gpus, "", point.efficiency, {}});
    model_all(mirror, series.machine, series.model, series.algorithm);
  }
  for (const PublishedClaim& claim : published_claims()) {
    const bool more = !mirrors.empty() && mirrors.back().system == claim.system;
    Mirror& mirror = more ? mirrors.back() : mirrors.emplace_back();
    mirror.system = claim.system;
    mirror.source = claim.source;
    mirror.figures.push_back(
        {claim.gpus, std::string(claim.statement), claim.efficiency, claim.images_per_second});
    if (claim.model.empty()) {
      mirror.why_not =
          "Not modelled: the network's gradients and its throughput on one GPU are in no source of ours.";
    } else if (!more) {
      model_all(mirror, claim.machine, claim.model, claim.algorithm);
    }
  }
  return mirrors;
}

std::optional<Residual> worst_residual(const Mirror& mirror, const Modelled& modelled) {
  std::optional<Residual> worst;
  for (const PublishedFigure& figure : mirror.figures) {
    if (!figure.efficiency) continue;
    const double difference = row_of(modelled, figure.gpus).efficiency - *figure.efficiency;
    if (!worst || std::abs(difference) > std::abs(worst->efficiency)) worst = {difference, figure.gpus};
  }
  return worst;
}

std::string text(const Mirror& mirror) {
  std::string result = fmt::format("{}\n{}\n\n{}\n", mirror.system, mirror.source, table_of(mirror).text());
  return result +
         (mirror.why_not.empty() ? range_text(mirror) + agreement_text(mirror) : mirror.why_not + "\n");
}

}  // namespace polyring
