// PublishedComparison: a published result beside the model, once for each combination of what was not
// published with it, with the residuals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

/// What the publications leave open.
struct Combination {
  int rails = 1;
  bool overlap = false;
  int batch = 32;  // per GPU
};

/// The model of one combination, a row for each published GPU count.
struct Modelled {
  Combination combination;
  std::vector<ScaleRow> rows;
};

/// A published figure: an efficiency, or images per second.
struct PublishedFigure {
  int gpus = 0;
  std::string statement;  // empty: a point of a series
  std::optional<double> efficiency;
  std::optional<double> images_per_second;
};

struct PublishedComparison {
  std::string system;
  std::string source;
  std::vector<PublishedFigure> figures;
  std::vector<Modelled> modelled;
};

/// As efficiencies are published, in whole percents: half of one.
inline constexpr double kPublishedRounding = 0.005;

/// The farthest of a combination's rows from the published efficiencies, and at how many GPUs that is.
struct Residual {
  double efficiency = 0;  // modelled − published, of largest magnitude
  int gpus = 0;
};
std::optional<Residual> worst_residual(const PublishedComparison& comparison, const Modelled& modelled);

/// A table, and which combinations agree with what was published.
std::string text(const PublishedComparison& comparison);

}  // namespace polyring
