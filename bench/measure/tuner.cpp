#include "bench/measure/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/session/memory_need.hpp"
#include "collectives/schedule/tuning.hpp"
#include "reports/result.hpp"

namespace polyring {
namespace {

constexpr ElementKind kKind = ElementKind::float32;
constexpr int kMostTurns = 4;
constexpr std::size_t kBranches = 2;
constexpr std::size_t kLastRound = 4;
/// Those of one round live together.
constexpr Bytes kLeastRoundMemory{64 << 20};
constexpr std::size_t kMostOfRound = 12;

constexpr StoppingRule kBrief{.warmup = 1, .time = Seconds{0.05}, .fewest = 5};
constexpr StoppingRule kLonger{.warmup = 1, .time = Seconds{0.2}, .fewest = 7};

}  // namespace

std::optional<TunerResult> Tuner::tune(Count count, const std::vector<Plan>& starts, const Make& make) {
  count_ = count;
  payload_ = bytes_of(count, kKind);
  make_ = &make;
  tried_ = {{effective(starts.front(), payload_), 1}};
  search(starts);
  if (!wrong_.empty()) return std::nullopt;
  std::vector<Plan> finalists = best(kLastRound + 1);
  std::erase(finalists, tried_.front().plan);
  finalists.resize(std::min(finalists.size(), kLastRound));
  finalists.resize(std::max<std::size_t>(1, fitting(finalists)));
  show_("the last round");
  const std::vector<double> speed = speeds(finalists, kLonger);
  if (!wrong_.empty()) return std::nullopt;
  const auto winner = std::max_element(speed.begin(), speed.end()) - speed.begin();
  show_("the final");
  return final_against(finalists[static_cast<std::size_t>(winner)]);
}

void Tuner::search(const std::vector<Plan>& starts) {
  try_all(starts);
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const std::size_t before = tried_.size();
    for (const Plan& plan : best(kBranches)) try_all(other_patterns(plan, payload_));
    if (tried_.size() == before) break;
  }
  for (const Plan& plan : best(kBranches)) try_all(other_cuts(plan, payload_));
}

bool Tuner::known(const Plan& plan) const {
  return std::any_of(tried_.begin(), tried_.end(),
                     [&](const Tried& tried) { return same_schedule(tried.plan, plan); });
}

void Tuner::try_all(const std::vector<Plan>& plans) {
  std::vector<Plan> fresh;
  for (const Plan& plan : plans) {
    Plan candidate = effective(plan, payload_);
    const bool queued =
        std::ranges::any_of(fresh, [&](const Plan& other) { return same_schedule(other, candidate); });
    if (!queued && !known(candidate)) fresh.push_back(std::move(candidate));
  }
  for (std::size_t begin = 0; begin < fresh.size() && wrong_.empty();) {
    show_(fmt::format("{} plans tried", tried_.size()));
    const auto part = std::span(fresh).subspan(begin).first(fitting(std::span(fresh).subspan(begin)));
    begin += std::max<std::size_t>(1, part.size());
    if (part.empty()) continue;
    const std::vector<double> speed = speeds(part, kBrief);
    for (std::size_t i = 0; i < speed.size(); ++i) tried_.push_back({part[i], speed[i]});
  }
}

Bytes Tuner::round_memory(Count count) {
  return {std::max(kLeastRoundMemory.value, bytes_of(count, kKind).value / 2)};
}

std::size_t Tuner::fitting(std::span<const Plan> plans) const {
  std::vector<double> held;
  for (const Plan& plan : plans.first(std::min(plans.size(), kMostOfRound)))
    held.push_back(static_cast<double>(held_(plan, count_).value));
  held = job_.world.max(held);
  double together = 0;
  std::size_t fit = 0;
  while (fit < held.size()) {
    together += held[fit];
    if (together > static_cast<double>(round_memory(count_).value)) break;
    ++fit;
  }
  return fit;
}

Tuner::Held held_by_executors(const Transport& transport) {
  return [&transport](const Plan& plan, Count count) {
    MemoryCount memory(transport);
    const auto executor = make_executor(plan, {.count = count, .kind = kKind}, memory);
    return memory.most().memory;
  };
}

std::vector<Plan> Tuner::best(std::size_t most) const {
  std::vector<Tried> sorted = tried_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Tried& a, const Tried& b) { return a.speed > b.speed; });
  sorted.resize(std::min(sorted.size(), most));
  std::vector<Plan> plans;
  for (Tried& tried : sorted) plans.push_back(std::move(tried.plan));
  return plans;
}

std::vector<double> Tuner::speeds(std::span<const Plan> plans, const StoppingRule& stop) {
  const std::vector<Samples> samples = measure_all(plans, false, stop);
  if (!wrong_.empty()) return {};
  std::vector<double> speeds;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    speeds.push_back(pairwise_ratio(samples[0].microseconds, samples[i].microseconds).median);
  }
  return speeds;
}

/// The default plan's samples, then those of the others.
std::vector<Samples> Tuner::measure_all(std::span<const Plan> plans, bool in_place,
                                        const StoppingRule& stop) {
  std::vector<Contender> contenders;
  contenders.push_back((*make_)(tried_.front().plan));
  for (const Plan& plan : plans) contenders.push_back((*make_)(plan));
  const Payload payload(kKind, ReduceOp::sum, job_.world.size());
  const MeasuredCall call{payload, {.count = count_, .kind = kKind}, in_place};
  std::vector<Samples> samples = measure(contenders, job_, call, {stop});
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].wrong.value_or(0) == 0) continue;
    const Plan& plan = i == 0 ? tried_.front().plan : plans[i - 1];
    wrong_.push_back(
        fmt::format("{} gave {} wrong elements of {}", to_text(plan), *samples[i].wrong, to_text(payload_)));
  }
  return samples;
}

std::optional<TunerResult> Tuner::final_against(const Plan& challenger) {
  // One plan is to serve both placements, so a sample is an allreduce of each.
  std::vector<double> of_default;
  std::vector<double> of_challenger;
  StoppingRule stop{iterations_};
  for (const bool in_place : {false, true}) {
    const std::vector<Samples> samples = measure_all(std::span(&challenger, 1), in_place, stop);
    if (!wrong_.empty()) return std::nullopt;
    stop.iterations = static_cast<int>(samples[0].microseconds.size());
    of_default.resize(samples[0].microseconds.size());
    of_challenger.resize(of_default.size());
    for (std::size_t i = 0; i < of_default.size(); ++i) {
      of_default[i] += samples[0].microseconds[i] / 2;
      of_challenger[i] += samples[1].microseconds[i] / 2;
    }
  }
  return TunerResult{challenger, timing(of_default).median, timing(of_challenger).median,
                     pairwise_ratio(of_default, of_challenger), tried_.size()};
}

}  // namespace polyring
