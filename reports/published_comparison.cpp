#include "reports/published_comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reports/tables.hpp"

namespace polyring {
namespace {

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

Table figures_table(const PublishedComparison& comparison) {
  std::vector<Column> columns{{"", "", "", Align::left}};
  std::vector<std::string> published{"published"};
  for (const PublishedFigure& figure : comparison.figures) {
    const bool percent = figure.efficiency.has_value();
    columns.push_back(
        {fmt::format("{} GPUs", figure.gpus), figure.statement, percent ? "%" : "images/s", Align::right});
    published.push_back(percent ? fmt::format("{:.1f}", 100 * *figure.efficiency)
                                : fmt::format("{:.0f}", *figure.images_per_second));
  }
  Table table(std::move(columns));
  table.add_row(std::move(published));
  for (const Modelled& modelled : comparison.modelled) {
    std::vector<std::string> cells{"modelled: " + combination_text(modelled.combination)};
    for (const PublishedFigure& figure : comparison.figures)
      cells.push_back(cell(row_of(modelled, figure.gpus), figure));
    table.add_row(std::move(cells));
  }
  return table;
}

/// Of the published efficiencies, those between the least and the greatest of all combinations.
std::string range_text(const PublishedComparison& comparison) {
  std::vector<std::string> outside;
  int efficiencies = 0;
  for (const PublishedFigure& figure : comparison.figures) {
    if (!figure.efficiency) continue;
    ++efficiencies;
    double least = 1;
    double most = 0;
    for (const Modelled& modelled : comparison.modelled) {
      const ScaleRow& row = row_of(modelled, figure.gpus);
      least = std::min(least, row.efficiency_low.value_or(row.efficiency));
      most = std::max(most, row.efficiency_high.value_or(row.efficiency));
    }
    if (*figure.efficiency < least - kPublishedRounding || *figure.efficiency > most + kPublishedRounding) {
      outside.push_back(fmt::format("{} GPUs ({:.1f} to {:.1f} %)", figure.gpus, 100 * least, 100 * most));
    }
  }
  if (efficiencies == 0) return "";
  if (outside.empty()) {
    return fmt::format(
        "Every published efficiency lies in the range of the combinations, to its rounding of {} %.\n",
        100 * kPublishedRounding);
  }
  return fmt::format("Published efficiencies outside of the range of all combinations: {}.\n",
                     fmt::join(outside, ", "));
}

/// The same of published rates.
std::string rates_text(const PublishedComparison& comparison) {
  std::string result;
  for (const PublishedFigure& figure : comparison.figures) {
    if (!figure.images_per_second) continue;
    std::vector<double> rates;
    for (const Modelled& modelled : comparison.modelled) {
      const ScaleRow& row = row_of(modelled, figure.gpus);
      for (const double end :
           {row.efficiency_low.value_or(row.efficiency), row.efficiency_high.value_or(row.efficiency)})
        rates.push_back(row.images_per_second * end / row.efficiency);
    }
    const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
    const bool inside = *figure.images_per_second >= *least && *figure.images_per_second <= *most;
    result +=
        fmt::format("The published {:.0f} images/s lie {} the range of all combinations, {:.0f} to {:.0f}.\n",
                    *figure.images_per_second, inside ? "in" : "outside of", *least, *most);
  }
  return result;
}

std::string agreement_text(const PublishedComparison& comparison) {
  std::vector<std::string> inside;
  const Modelled* nearest = nullptr;
  Residual least;
  for (const Modelled& modelled : comparison.modelled) {
    const auto residual = worst_residual(comparison, modelled);
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

std::optional<Residual> worst_residual(const PublishedComparison& comparison, const Modelled& modelled) {
  std::optional<Residual> worst;
  for (const PublishedFigure& figure : comparison.figures) {
    if (!figure.efficiency) continue;
    const double difference = row_of(modelled, figure.gpus).efficiency - *figure.efficiency;
    if (!worst || std::abs(difference) > std::abs(worst->efficiency)) worst = {difference, figure.gpus};
  }
  return worst;
}

std::string text(const PublishedComparison& comparison) {
  std::string result =
      fmt::format("{}\n{}\n\n{}\n", comparison.system, comparison.source, figures_table(comparison).text());
  return result + range_text(comparison) + rates_text(comparison) + agreement_text(comparison);
}

}  // namespace polyring
