#include "bench/predict/best_strategies.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "bench/predict/step_model.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

/// Larger micro-batches spare nothing but latency, and take memory.
constexpr int kLargestMicroBatch = 64;
/// More chunks than this send as often as they compute.
constexpr int kMostChunks = 8;
/// A rough price is off by a few per cent: what is dearer by more than this is not simulated.
constexpr double kNear = 1.05;
/// Nor are more than these of one product, and in all.
constexpr int kMostOfProduct = 4;
constexpr int kMostSimulated = 40;

std::vector<int> divisors(int n, int most) {
  std::vector<int> all;
  for (int divisor = 1; divisor <= std::min(n, most); ++divisor)
    if (n % divisor == 0) all.push_back(divisor);
  return all;
}

/// Whether it can divide the model, the batch and the experts.
bool divides(const ScalingCase& scaling, const Strategy& strategy) {
  try {
    check_division(scaling.model, strategy);
    micro_batches_of(scaling, strategy);
  } catch (const Error&) {
    return false;
  }
  return true;
}

int experts_of(const Model& model) {
  int experts = 1;
  for (const Block& block : model.blocks) experts = std::max(experts, block.experts.count);
  return experts;
}

/// Fills in what is left open when tensor, pipeline and data are chosen.
class Candidates {
 public:
  Candidates(const ScalingCase& scaling, int gpus) : scaling_(scaling), gpus_(gpus) {}

  std::vector<Strategy> run() {
    const int layers = static_cast<int>(layers_of(scaling_.model));
    for (const int tensor : divisors(ranks_of_domain(with_ranks(scaling_.machine, gpus_)), gpus_)) {
      if (gpus_ % tensor != 0) continue;
      for (const int pipeline : divisors(gpus_ / tensor, static_cast<int>(scaling_.model.blocks.size()))) {
        Strategy strategy;
        strategy.intra = tensor;
        strategy.sequence = tensor > 1;
        strategy.pipeline = pipeline;
        strategy.replicas = gpus_ / tensor / pipeline;
        if (layers % pipeline != 0 || !divides(scaling_, strategy)) continue;
        add_zeros(strategy);
      }
    }
    return std::move(all_);
  }

 private:
  void add_zeros(Strategy strategy) {
    for (const int zero : {0, 1, 2, 3}) {
      if (zero > 0 && strategy.replicas == 1) break;
      strategy.zero = zero;
      for (const int expert : divisors(experts_of(scaling_.model), strategy.replicas)) {
        strategy.expert = expert;
        if (strategy.replicas % expert == 0) add_orders(strategy);
      }
    }
  }

  void add_orders(Strategy strategy) {
    if (strategy.pipeline == 1) return add_micro_batches(strategy);
    const int layers = static_cast<int>(layers_of(scaling_.model));
    for (const bool near : {false, true}) {
      if (near && strategy.replicas == 1) break;
      strategy.data_near = near;
      for (const int chunks : divisors(layers / strategy.pipeline, kMostChunks)) {
        strategy.chunks = chunks;
        strategy.order = chunks == 1 ? PipelineOrder::one_forward_one_backward : PipelineOrder::interleaved;
        add_micro_batches(strategy);
      }
    }
  }

  /// The largest first: of equals it is taken, since real GPUs compute small ones less efficiently. A replica
  /// of one stage may also take all its samples at once.
  void add_micro_batches(Strategy strategy) {
    const std::int64_t all = scaling_.batch * strategy.replica_gpus();
    if (strategy.pipeline == 1 && all > kLargestMicroBatch) add_if_it_divides(strategy, all);
    for (int samples = kLargestMicroBatch; samples > 0; samples /= 2) add_if_it_divides(strategy, samples);
  }

  void add_if_it_divides(Strategy strategy, std::int64_t samples) {
    strategy.micro_batch = static_cast<int>(samples);
    if (divides(scaling_, strategy)) all_.push_back(strategy);
  }

  const ScalingCase& scaling_;
  int gpus_;
  std::vector<Strategy> all_;
};

/// Recomputes as little as fits; nothing where even everything is not enough.
std::optional<Strategy> fitted(const ScalingCase& scaling, Strategy strategy,
                               const std::vector<StageBlocks>& stages) {
  const Bytes memory = gpu_memory(scaling);
  const TrainingState training = training_of(scaling, strategy);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    strategy.recompute = recompute;
    const StrategyMemory need = strategy_memory(scaling.model, strategy, stages, training);
    if (fits(need, memory)) return strategy;
  }
  return std::nullopt;
}

struct Priced {
  Strategy strategy;
  Seconds time;
};

std::vector<Priced> price_all(const ScalingCase& scaling, const std::vector<Strategy>& strategies,
                              StrategyTimes& times) {
  const StepCosts costs = middle_of(times.ranges());
  std::map<int, std::vector<StageBlocks>> stages;
  std::vector<Priced> priced;
  for (const Strategy& strategy : strategies) {
    const auto [at, added] = stages.try_emplace(strategy.virtual_stages());
    if (added) at->second = balanced_stages(scaling.model, strategy.virtual_stages());
    const auto fits = fitted(scaling, strategy, at->second);
    if (fits)
      priced.push_back({*fits, StrategyStep(scaling, *fits, times, at->second).run(costs, true).total});
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const Priced& a, const Priced& b) { return a.time < b.time; });
  return priced;
}

/// Factors that make one strategy another, and not a variant of it.
using Product = std::tuple<int, int, int>;

Product product_of(const Strategy& strategy) { return {strategy.intra, strategy.pipeline, strategy.expert}; }

/// Simulates the cheapest, at least `wanted` products where there are so many.
std::vector<FoundStrategy> simulate_cheapest(const ScalingCase& scaling, const std::vector<Priced>& priced,
                                             StrategyTimes& times, int wanted) {
  std::vector<FoundStrategy> simulated;
  std::map<Product, double> cheapest;
  std::map<std::pair<Product, int>, int> of_stage;  // and of zero
  double best = 0;
  for (const Priced& each : priced) {
    const Product product = product_of(each.strategy);
    const bool enough = static_cast<int>(cheapest.size()) >= wanted;
    const bool far = each.time.value > kNear * best;
    if (enough && (far || static_cast<int>(simulated.size()) >= kMostSimulated)) break;
    const auto [first, added] = cheapest.try_emplace(product, each.time.value);
    if (!added && each.time.value > kNear * first->second) continue;
    if (++of_stage[{product, each.strategy.zero}] > kMostOfProduct) continue;
    StrategyStep step(scaling, each.strategy, times);
    simulated.push_back({each.strategy, step.run(middle_of(times.ranges())), step.memory()});
    const double time = simulated.back().parts.total.value;
    best = best == 0 ? time : std::min(best, time);
  }
  return simulated;
}

/// Nothing where it does not fit.
std::optional<FoundStrategy> plain_step(const ScalingCase& scaling, const std::string& algorithm,
                                        const PlanConstraints& constraints, int gpus) {
  const Strategy strategy = for_gpus({}, gpus);
  FoundStrategy found{strategy, {}, plain_memory(scaling.model, training_of(scaling, strategy))};
  if (!fits(found.memory, gpu_memory(scaling))) return std::nullopt;
  const StepModel model(scaling, algorithm, constraints, gpus);
  const StepTime time = model.time(middle_of(model.ranges()));
  found.parts.total = time.total;
  found.parts.data = time.exposed;
  found.parts.compute = time.total - time.exposed;
  return found;
}

/// Of the product of `found`. What was simulated comes by time, what was priced by price.
std::map<int, Seconds> zeros_of(const FoundStrategy& found, const std::vector<Strategy>& strategies,
                                const std::vector<Priced>& priced,
                                const std::vector<FoundStrategy>& simulated) {
  const Product product = product_of(found.strategy);
  std::map<int, Seconds> zeros;
  for (const Strategy& strategy : strategies)
    if (product_of(strategy) == product) zeros.try_emplace(strategy.zero, Seconds{});
  std::map<int, Seconds> prices;
  for (const Priced& each : priced)
    if (product_of(each.strategy) == product) prices.try_emplace(each.strategy.zero, each.time);
  // A plain step has no price of its own.
  const auto own = found.strategy.is_plain() ? prices.end() : prices.find(found.strategy.zero);
  const double per_price = own == prices.end() ? 1 : found.parts.total.value / own->second.value;
  for (const auto& [zero, price] : prices) zeros[zero] = per_price * price;
  std::set<int> seen;
  for (const FoundStrategy& each : simulated) {
    if (product_of(each.strategy) == product && seen.insert(each.strategy.zero).second)
      zeros[each.strategy.zero] = each.parts.total;
  }
  return zeros;
}

void refuse_all(const ScalingCase& scaling, int gpus) {
  const Strategy alone{.replicas = gpus};
  const TrainingState training = training_of(scaling, alone);
  const Bytes memory = gpu_memory(scaling);
  usage_error("no strategy fits {} on {} GPUs in {}: {}", scaling.model.name, gpus, usable_text(memory),
              split_advice(scaling.model, training, scaling.machine.host(0).ranks(), memory));
}

}  // namespace

std::vector<Strategy> candidate_strategies(const ScalingCase& scaling, int gpus) {
  return Candidates(scaling, gpus).run();
}

BestStrategies best_strategies(const ScalingCase& plain, const std::string& algorithm,
                               const PlanConstraints& constraints, const Cluster& cluster, int wanted) {
  using Detail = StrategyTimes::Detail;
  const ScalingCase scaling = divided(plain, {.pipeline = 2}, false);
  const Router router(cluster);
  const std::vector<Strategy> strategies = candidate_strategies(scaling, cluster.ranks());
  StrategyTimes rough(scaling, algorithm, constraints, cluster, router, Detail::rough);
  const std::vector<Priced> priced = price_all(scaling, strategies, rough);
  auto alone = plain_step(plain, algorithm, constraints, cluster.ranks());
  if (priced.empty() && !alone) refuse_all(scaling, cluster.ranks());
  StrategyTimes times(scaling, algorithm, constraints, cluster, router, Detail::simulated);
  std::vector<FoundStrategy> simulated = simulate_cheapest(scaling, priced, times, wanted);
  BestStrategies found;
  found.considered = static_cast<int>(strategies.size()) + 1;
  found.fitting = static_cast<int>(priced.size()) + (alone ? 1 : 0);
  if (alone) simulated.push_back(std::move(*alone));
  found.simulated = static_cast<int>(simulated.size());
  std::stable_sort(simulated.begin(), simulated.end(), [](const FoundStrategy& a, const FoundStrategy& b) {
    return a.parts.total < b.parts.total;
  });
  std::set<Product> shown;
  for (const FoundStrategy& each : simulated) {
    if (static_cast<int>(found.best.size()) == wanted) break;
    if (!shown.insert(product_of(each.strategy)).second) continue;
    found.best.push_back(each);
    found.best.back().zeros = zeros_of(each, strategies, priced, simulated);
  }
  return found;
}

namespace {

struct NamedPart {
  const char* name;
  Seconds StrategyParts::*part;
};

constexpr NamedPart kParts[] = {
    {"computing", &StrategyParts::compute}, {"recomputing", &StrategyParts::recompute},
    {"bubble", &StrategyParts::bubble},     {"tensor collectives", &StrategyParts::tensor},
    {"alltoalls", &StrategyParts::expert},  {"gradients and weights", &StrategyParts::data}};

/// "1 does not fit, 2 +6.3 %": all stages but the one that is shown, over it.
std::string other_zeros(const FoundStrategy& found) {
  const double own = found.parts.total.value;
  std::vector<std::string> others;
  for (const auto& [zero, time] : found.zeros) {
    if (zero == found.strategy.zero) continue;
    others.push_back(time.value == 0 ? fmt::format("{} does not fit", zero)
                                     : fmt::format("{} {:+.1f} %", zero, 100 * (time.value / own - 1)));
  }
  return fmt::format("{}", fmt::join(others, ", "));
}

}  // namespace

std::string why(const FoundStrategy& found, Bytes memory) {
  std::vector<std::string> parts;
  for (const NamedPart& named : kParts) {
    const double part = 100 * (found.parts.*named.part).value / found.parts.total.value;
    if (part >= 0.05) parts.push_back(fmt::format("{} {:.1f} %", named.name, part));
  }
  std::string text = fmt::format("{}; {:.1f}", fmt::join(parts, ", "), found.memory.total() / 1e9);
  if (memory.value > 0) text += fmt::format(" of {:.1f}", static_cast<double>(memory.value) / 1e9);
  return text + " GB";
}

std::string behind(const FoundStrategy& found, const FoundStrategy& best) {
  constexpr std::size_t kShown = 2;
  constexpr double kLeast = 0.05;  // per cent
  std::vector<std::pair<double, const char*>> differences;
  for (const NamedPart& named : kParts) {
    const double more = (found.parts.*named.part - best.parts.*named.part).value;
    differences.emplace_back(100 * more / best.parts.total.value, named.name);
  }
  std::stable_sort(differences.begin(), differences.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> texts;
  for (const auto& [percent, name] : differences) {
    if (std::abs(percent) >= kLeast && texts.size() < kShown)
      texts.push_back(fmt::format("{} {:+.1f} %", name, percent));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

namespace {

std::string to_best(const BestStrategies& found, const FoundStrategy& each) {
  return fmt::format("{:+.1f} %", 100 * (each.parts.total.value / found.best.front().parts.total.value - 1));
}

std::string title_of(const BestStrategies& found, std::string_view where) {
  return fmt::format(
      "{}{}, of {} that divide the work and {} that fit ({} simulated), the fastest of each product of "
      "tensor, "
      "pipeline and expert",
      kBestStrategies, where, found.considered, found.fitting, found.simulated);
}

}  // namespace

Table table_of(const BestStrategies& found, const ScalingCase& scaling, std::string_view where) {
  Table table({{"", "strategy", "", Align::left},
               {"", "step", "", Align::right},
               {"", "to best", "", Align::right},
               {"", "mostly by", "", Align::left},
               {"", "where its time goes, and memory", "", Align::left},
               {"", "other stages of zero", "", Align::left}});
  const FoundStrategy& best = found.best.front();
  for (const FoundStrategy& each : found.best) {
    table.add_row({to_text(each.strategy), to_text(each.parts.total), to_best(found, each),
                   behind(each, best), why(each, gpu_memory(scaling)), other_zeros(each)});
  }
  table.caption = title_of(found, where);
  return table;
}

std::string text_of(const BestStrategies& found, const ScalingCase& scaling, std::string_view where) {
  std::vector<std::string> each;
  for (const FoundStrategy& one : found.best) {
    each.push_back(fmt::format("{} in {} ({}: {})", to_text(one.strategy), to_text(one.parts.total),
                               to_best(found, one), why(one, gpu_memory(scaling))));
  }
  return fmt::format("{}: {}.", title_of(found, where), fmt::join(each, "; "));
}

}  // namespace polyring
