#include "reports/compare_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/units.hpp"
#include "reports/not_comparable.hpp"

namespace polyring {
namespace {

enum class Direction { less, none, more };

/// Without an interval, a ratio so near 1 is called no difference.
constexpr double kNear = 0.05;
constexpr std::size_t kMostStretches = 4;

struct Point {
  std::uint64_t size = 0;
  Direction direction = Direction::none;
  double ratio = 1;
};

/// Neighbouring sizes at which a ratio goes in one direction.
struct Stretch {
  Direction direction = Direction::none;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  double least = 0;
  double most = 0;
  int sizes = 0;
  bool operator==(const Stretch&) const = default;
};

bool is_real(Finding finding) {
  return finding == Finding::faster || finding == Finding::slower || finding == Finding::undecided;
}

/// `less` is less of what the ratio is of: time, or bus bandwidth.
Direction direction_of(const ComparedCell& cell, bool by_busbw) {
  if (cell.finding == Finding::undecided) return Direction::none;
  if (cell.finding == Finding::faster) return by_busbw ? Direction::more : Direction::less;
  if (cell.finding == Finding::slower) return by_busbw ? Direction::less : Direction::more;
  if (cell.ratio->median < 1 - kNear) return Direction::less;
  return cell.ratio->median > 1 + kNear ? Direction::more : Direction::none;
}

std::vector<Stretch> stretches_of(const std::vector<Point>& points) {
  std::vector<Stretch> stretches;
  for (const Point& point : points) {
    if (stretches.empty() || stretches.back().direction != point.direction)
      stretches.push_back({point.direction, point.size, point.size, point.ratio, point.ratio, 0});
    Stretch& last = stretches.back();
    last.last = point.size;
    last.least = std::min(last.least, point.ratio);
    last.most = std::max(last.most, point.ratio);
    ++last.sizes;
  }
  return stretches;
}

std::string range_text(const Stretch& stretch) {
  const auto text = [](double ratio) {
    return ratio < 0.1 ? fmt::format("{:.1g}", ratio) : fmt::format("{:.{}f}", ratio, ratio < 10 ? 2 : 1);
  };
  const std::string least = text(stretch.least);
  const std::string most = text(stretch.most);
  return least == most ? least : fmt::format("{} to {}", least, most);
}

std::string where_text(const Stretch& stretch) {
  if (stretch.first == stretch.last) return "at " + to_text(Bytes{stretch.first});
  return fmt::format("from {} to {}", to_text(Bytes{stretch.first}), to_text(Bytes{stretch.last}));
}

/// What a sentence is about.
struct Subject {
  std::string ours;    // "B's multi-ring"
  std::string theirs;  // "A's": before "time"; or "time of A's mpi"
  bool by_busbw = false;
  bool sampled = true;  // intervals say what is real
};

std::string share_text(const Stretch& stretch, const Subject& subject) {
  return fmt::format("{} {} of {}", subject.by_busbw ? "reaches" : "takes", range_text(stretch),
                     subject.theirs);
}

std::string sentence_of(const std::vector<Stretch>& stretches, const Subject& subject,
                        const std::string& places) {
  std::vector<std::string> parts;
  if (stretches.size() <= kMostStretches) {
    for (const Stretch& stretch : stretches) {
      if (stretch.direction != Direction::none) {
        parts.push_back(fmt::format("{} {}", share_text(stretch, subject), where_text(stretch)));
      } else if (subject.sampled) {
        parts.push_back(fmt::format("{} no difference shows ({}, intervals include 1)", where_text(stretch),
                                    range_text(stretch)));
      } else {
        parts.push_back(fmt::format("{} they are within 5 % ({})", where_text(stretch), range_text(stretch)));
      }
    }
  } else {
    std::array<Stretch, 3> all{};
    int sizes = 0;
    for (const Stretch& stretch : stretches) {
      Stretch& of = all.at(static_cast<std::size_t>(stretch.direction));
      of.least = of.sizes > 0 ? std::min(of.least, stretch.least) : stretch.least;
      of.most = std::max(of.most, stretch.most);
      of.sizes += stretch.sizes;
      of.direction = stretch.direction;
      sizes += stretch.sizes;
    }
    for (const Direction direction : {Direction::less, Direction::more}) {
      const Stretch& of = all.at(static_cast<std::size_t>(direction));
      if (of.sizes > 0)
        parts.push_back(fmt::format("{} at {} of {} sizes", share_text(of, subject), of.sizes, sizes));
    }
    const Stretch& none = all.at(static_cast<std::size_t>(Direction::none));
    if (none.sizes > 0) {
      parts.push_back(fmt::format("at {} {} ({})", none.sizes,
                                  subject.sampled ? "no difference shows" : "they are within 5 %",
                                  range_text(none)));
    }
  }
  const bool any =
      std::ranges::any_of(stretches, [](const auto& of) { return of.direction != Direction::none; });
  const char* real = subject.sampled && any ? " What differs is real: no interval there includes 1." : "";
  return fmt::format("{}{}: {}.{}", subject.ours, places, fmt::join(parts, "; "), real);
}

/// The points of one contender and placement of a run that have a ratio.
struct Series {
  std::map<bool, std::vector<Point>> places;
  std::set<std::string> ours;  // names of algorithms
  std::set<std::string> theirs;
  std::set<Finding> findings;
};

Series series_of(const ComparedTable& table, const std::string& contender, std::size_t run,
                 std::size_t baseline) {
  Series series;
  for (const ComparedLine& line : table.lines) {
    const ComparedCell& cell = line.cells[run];
    if (line.contender != contender || !cell.ratio) continue;
    series.places[line.in_place].push_back(
        {line.size_bytes, direction_of(cell, table.by_busbw[run]), cell.ratio->median});
    series.ours.insert(cell.row->algorithm);
    series.theirs.insert(line.cells[baseline].row->algorithm);
    series.findings.insert(cell.finding);
  }
  return series;
}

/// "nccl" of one name; "fastest" of several.
std::string name_of(const std::set<std::string>& names) {
  return names.size() == 1 ? *names.begin() : "fastest";
}

Subject subject_of(const Series& series, const ComparedTable& table, std::span<const ComparedRun> runs,
                   std::size_t run, std::size_t baseline) {
  Subject subject;
  const std::string ours = name_of(series.ours);
  const std::string theirs = name_of(series.theirs);
  const char* what = table.by_busbw[run] ? "bus bandwidth" : "time";
  subject.ours = fmt::format("{}'s {}", runs[run].label, ours);
  subject.theirs = ours == theirs ? fmt::format("{}'s {}", runs[baseline].label, what)
                                  : fmt::format("the {} of {}'s {}", what, runs[baseline].label, theirs);
  subject.by_busbw = table.by_busbw[run];
  subject.sampled = std::ranges::all_of(series.findings, is_real);
  return subject;
}

/// The series with the directions at which both placements agree are told together.
std::vector<std::string> sentences_of(const Series& series, const Subject& subject) {
  std::map<std::uint64_t, Point> joint;
  bool agree = series.places.size() == 2;
  std::vector<Point> both;
  for (const auto& [in_place, points] : series.places) {
    for (const Point& point : points) {
      const auto [known, fresh] = joint.emplace(point.size, point);
      agree = agree && known->second.direction == point.direction;
      both.push_back(point);
    }
  }
  std::vector<std::string> sentences;
  if (agree) {
    std::ranges::stable_sort(both, {}, &Point::size);
    std::vector<Stretch> stretches = stretches_of(both);
    for (Stretch& stretch : stretches) {  // count a size once
      stretch.sizes = static_cast<int>(std::ranges::count_if(
          joint, [&](const auto& of) { return of.first >= stretch.first && of.first <= stretch.last; }));
    }
    return {sentence_of(stretches, subject, ", in and out of place")};
  }
  for (const auto& [in_place, points] : series.places)
    sentences.push_back(
        sentence_of(stretches_of(points), subject, in_place ? ", in place" : ", out of place"));
  return sentences;
}

/// Why no interval says what is real; empty where one does.
std::string doubt_text(const std::set<Finding>& findings) {
  if (findings.contains(Finding::other_timing)) return " Calls were timed in different ways.";
  if (findings.contains(Finding::no_samples)) return " Without samples nothing tells whether this is real.";
  if (findings.contains(Finding::few_samples))
    return " There are too few samples to tell whether this is real.";
  return "";
}

}  // namespace

std::vector<std::string> summary_sentences(std::span<const ComparedRun> runs, const Comparison& comparison) {
  std::vector<std::string> sentences;
  const bool titled = comparison.tables.size() > 1;
  for (const ComparedTable& table : comparison.tables) {
    std::vector<std::string> contenders;
    for (const ComparedLine& line : table.lines)
      if (std::ranges::find(contenders, line.contender) == contenders.end())
        contenders.push_back(line.contender);
    for (std::size_t run = 0; run < runs.size(); ++run) {
      if (run == comparison.baseline) continue;
      for (const std::string& contender : contenders) {
        const Series series = series_of(table, contender, run, comparison.baseline);
        if (series.places.empty()) continue;
        const Subject subject = subject_of(series, table, runs, run, comparison.baseline);
        for (const std::string& sentence : sentences_of(series, subject)) {
          std::string whole = fmt::format("{}{}{}", titled ? title_of(table) + ": " : "", sentence,
                                          doubt_text(series.findings));
          // The fastest may be one contender, whose sentence is the same.
          if (std::ranges::find(sentences, whole) == sentences.end()) sentences.push_back(std::move(whole));
        }
      }
    }
  }
  return sentences;
}

}  // namespace polyring
