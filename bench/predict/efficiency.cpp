#include "bench/predict/efficiency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "reports/tables.hpp"

namespace polyring {
namespace {

constexpr double kWidest = 1.25;  // of a range from data: high / low
constexpr double kMargin = 0.03;  // for machines that nobody published
constexpr std::size_t kSeveralMachines = 3;

/// Parts of the rate, of one machine each.
using Figures = std::vector<std::pair<std::string, double>>;

double part_of(const PublishedRate& row, const std::pair<const Bytes, Bandwidth>& point) {
  return point.second.value / row.rate.value;
}

/// Between two payloads by their logarithm, as curves of bandwidth are drawn; outside as at the end.
double part_at(const PublishedRate& row, Bytes size) {
  const auto above = row.busbw.lower_bound(size);
  if (above == row.busbw.end()) return part_of(row, *row.busbw.rbegin());
  if (above == row.busbw.begin() || above->first == size) return part_of(row, *above);
  const auto below = std::prev(above);
  const auto logarithm = [](Bytes bytes) { return std::log(static_cast<double>(bytes.value)); };
  const double way =
      (logarithm(size) - logarithm(below->first)) / (logarithm(above->first) - logarithm(below->first));
  return (1 - way) * part_of(row, *below) + way * part_of(row, *above);
}

/// What the row says of such a payload, if anything.
std::optional<double> answer(PublishedRate row, const RateQuestion& question) {
  const bool large = question.size >= kLargePayload;
  const Bytes smallest = row.busbw.begin()->first;
  if (row.saturated) {
    if (large || question.size >= smallest) return part_at(row, question.size);
    return std::nullopt;
  }
  if (!large) {
    const bool spanned = question.size >= smallest && question.size <= row.busbw.rbegin()->first;
    if (!spanned || row.hosts != question.hosts || row.ranks != question.ranks) return std::nullopt;
    return part_at(row, question.size);
  }
  std::erase_if(row.busbw, [](const auto& point) { return point.first < kLargePayload; });
  return row.busbw.empty() ? std::nullopt : std::optional(part_at(row, question.size));
}

/// Trees and rings send over the same links, one message at a time: figures of both tell what a tree reaches.
bool tells_of(std::string_view published, std::string_view asked) {
  return published == asked || (asked == "tree" && published == "ring");
}

Figures figures(const RateQuestion& question, const PublishedRates& published,
                const std::function<bool(std::string_view link)>& accepted) {
  Figures found;
  for (const PublishedRate& row : published.rates) {
    if (row.state == PublishedState::faulty || !accepted(row.link) ||
        !tells_of(row.implementation, question.implementation))
      continue;
    if (const auto part = answer(row, question)) found.emplace_back(row.machine, *part);
  }
  return found;
}

std::size_t machines_in(const Figures& figures) {
  std::set<std::string> machines;
  for (const auto& [machine, part] : figures) machines.insert(machine);
  return machines.size();
}

std::vector<double> parts_of(const Figures& figures) {
  std::vector<double> parts;
  for (const auto& [machine, part] : figures) parts.push_back(part);
  return parts;
}

double median(std::vector<double> parts) {
  std::ranges::sort(parts);
  return (parts[(parts.size() - 1) / 2] + parts[parts.size() / 2]) / 2;
}

/// The most that a link can give: the whole, or what headers leave of its rate.
double most_of(std::string_view link, const PublishedRates& published) {
  double frames = 0;
  for (const PublishedRate& row : published.rates) {
    if (row.link == link && row.implementation == "frames") frames = std::max(frames, part_at(row, {}));
  }
  return frames > 0 ? frames : 1;
}

std::string percent(double low, double high) {
  const auto digits = [](double part) { return significant(100 * part); };
  return digits(low) == digits(high) ? digits(low) + " %"
                                     : fmt::format("{} to {} %", digits(low), digits(high));
}

/// The kinds whose generations resemble each other.
std::string_view generations_of(std::string_view link) {
  constexpr std::array<std::string_view, 4> kKinds{"NVLink", "PCIe", "xGMI", "InfiniBand"};
  const auto kind =
      std::ranges::find_if(kKinds, [&](std::string_view name) { return link.starts_with(name); });
  return kind == kKinds.end() ? std::string_view{} : *kind;
}

Efficiency from_figures(const RateQuestion& question, const Figures& figures, double most) {
  std::vector<double> parts = parts_of(figures);
  const auto [least, greatest] = std::ranges::minmax(parts);
  const std::size_t machines = machines_in(figures);
  Efficiency result{least * (1 - kMargin), greatest * (1 + kMargin), true, {}};
  std::string how = fmt::format(", taken {:.0f} % wider at each end", 100 * kMargin);
  double middle = std::sqrt(least * greatest);
  if (result.high > kWidest * result.low) {
    middle = median(parts);
    how = "; they spread, and 25 % about their median are taken";
  } else if (machines < kSeveralMachines) {
    how = ", so few that 25 % about them are taken";
  }
  if (machines < kSeveralMachines || result.high > kWidest * result.low) {
    result.low = middle / std::sqrt(kWidest);
    result.high = middle * std::sqrt(kWidest);
  }
  result.high = std::min(result.high, std::max(most, greatest));
  result.rests_on =
      fmt::format("{} reach {} of the rate of {} in {} published figure{} of {} machine{}{}",
                  implementation_text(question.implementation), percent(least, greatest), question.link,
                  figures.size(), figures.size() == 1 ? "" : "s", machines, machines == 1 ? "" : "s", how);
  return result;
}

Efficiency from_generations(const RateQuestion& question, std::string_view kind, const Figures& figures) {
  std::vector<double> parts = parts_of(figures);
  const auto [least, greatest] = std::ranges::minmax(parts);
  const double middle = median(parts);
  const std::string what = implementation_text(question.implementation);
  return {
      middle / kWidest, std::min(middle * kWidest, std::max(1.0, greatest)), false,
      fmt::format("no figure of {} over {} is published; over other kinds of {} they reach {} of the rate, "
                  "and 1.25 times less and more than the median is taken",
                  what, question.link, kind, percent(least, greatest))};
}

}  // namespace

std::string implementation_text(std::string_view implementation) {
  if (implementation == "ring") return "rings";
  if (implementation == "tree") return "trees";
  if (implementation == "tree inside a host") return "trees inside a host";
  if (implementation == "in-switch") return "reductions in the switches";
  if (implementation == "in-switch tree") return "trees over reductions in the switches";
  if (implementation == "mpi") return "MPI's own allreduces";
  return std::string(implementation);
}

std::optional<Efficiency> efficiency(const RateQuestion& question, const PublishedRates& published) {
  const Figures own =
      figures(question, published, [&](std::string_view link) { return link == question.link; });
  if (!own.empty()) return from_figures(question, own, most_of(question.link, published));
  if (question.size < kLargePayload) return std::nullopt;
  const std::string_view kind = generations_of(question.link);
  const Figures others = figures(
      question, published, [&](std::string_view link) { return !kind.empty() && link.starts_with(kind); });
  if (!others.empty()) return from_generations(question, kind, others);
  return Efficiency{0.5, 1, false,
                    fmt::format("no figure of {} over {} is published: half of the rate to all of it",
                                implementation_text(question.implementation), question.link)};
}

}  // namespace polyring
