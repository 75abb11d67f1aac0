// Published scaling results that ours stand beside. Facts, each with where it was read; nothing is fitted to
// them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace polyring {

struct PublishedPoint {
  int gpus;
  std::optional<double> speedup;  // over one node
  double efficiency;              // 1 is ideal
};

struct PublishedScaling {
  std::string_view system;     // "IBM PowerAI DDL, Caffe"
  std::string_view machine;    // the preset's name
  std::string_view model;      // the model catalogue's name
  std::string_view algorithm;  // ours that is the most like theirs
  std::optional<int> batch;    // per GPU; nothing: not published
  std::string_view source;
  std::span<const PublishedPoint> points;
};

std::span<const PublishedScaling> published_scaling();

/// What was published of one size of cluster alone: an efficiency, or a rate.
struct PublishedClaim {
  std::string_view system;
  std::string_view machine;  // the preset's name
  std::string_view model;    // the model catalogue's name
  std::string_view algorithm;
  int gpus;
  std::string_view statement;  // in words, what the figure comes from
  std::optional<double> efficiency;
  std::optional<double> images_per_second;
  std::optional<int> batch;  // per GPU; nothing: not published
  std::string_view source;
};

std::span<const PublishedClaim> published_claims();

/// Null when nothing is published for the combination.
const PublishedScaling* find_published(std::string_view machine, std::string_view model,
                                       std::string_view algorithm);

/// Null when the series has no such GPU count, or there is no series.
const PublishedPoint* find_point(const PublishedScaling* series, int gpus);

}  // namespace polyring
