#include "bench/measure/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/measure/memory_pass.hpp"
#include "collectives/schedule/bound.hpp"

namespace polyring {
namespace {

std::string measurements(int number) {
  return fmt::format("{} measurement{}", number, number == 1 ? "" : "s");
}

}  // namespace

Bounds::Bounds(Cluster cluster, Seconds head_start, Collective collective)
    : collective_(collective), cluster_(std::move(cluster)), head_start_(head_start) {}

std::optional<Timing> Bounds::of_topology(Bytes size) const {
  if (cluster_.groups.empty()) return std::nullopt;
  const Seconds time = collective_bound(collective_, cluster_, size).time - head_start_;
  // It is infinite where the probe sees no port of a host.
  if (time.value <= 0 || !std::isfinite(time.value)) return std::nullopt;
  return exact_timing(time.value * 1e6);
}

bool Bounds::holds(const Timing& bound, std::span<const Samples> calls, int& beaten) {
  const bool is_beaten = std::ranges::any_of(calls, [&bound](const Samples& samples) {
    return !samples.microseconds.empty() && is_faster(timing(samples.microseconds), bound);
  });
  if (is_beaten) ++beaten;
  return !is_beaten;
}

std::optional<double> Bounds::bound_us(Bytes size, std::span<const Samples> passes,
                                       std::span<const Samples> calls) {
  std::optional<double> greatest;
  const auto links = of_topology(size);
  if (links && holds(*links, calls, beaten_links_)) greatest = links->median;
  if (passes.empty()) return greatest;
  const Timing memory = fastest(passes);
  if (holds(memory, calls, beaten_passes_) && memory.median > greatest.value_or(0)) {
    greatest = memory.median;
    uses_passes_ = true;
  }
  return greatest;
}

std::vector<std::string> Bounds::notes() const {
  std::vector<std::string> notes;
  if (uses_passes_) {
    notes.push_back(fmt::format(
        "From {} the bound is measured beside the algorithms: each rank reads and writes its payload once, "
        "all at the same time.",
        to_text(kLeastMemoryBound)));
  }
  if (head_start_.value > 0) {
    notes.push_back(fmt::format(
        "The shaper of an emulated link lets a burst pass at once, for which its rate would need {}: the "
        "bound is less by so much, and payloads that are not larger have none.",
        to_text(head_start_)));
  }
  if (beaten_passes_ > 0) {
    notes.push_back(fmt::format(
        "In {} one pass over the same memory took longer than an allreduce beside it, by more than "
        "noise, and is no bound there: what memory gives has changed, or others used this machine.",
        measurements(beaten_passes_)));
  }
  if (beaten_links_ > 0) {
    notes.push_back(fmt::format(
        "In {} a call took less than the time that the links allow, by more than noise; so the "
        "probe takes a link for slower than it is, or does not see a link, and no bound is given there.",
        measurements(beaten_links_)));
  }
  return notes;
}

}  // namespace polyring
