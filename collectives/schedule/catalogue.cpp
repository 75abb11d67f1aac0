#include "collectives/schedule/catalogue.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {
namespace {

/// One pattern over all ranks; the pattern's file has the algorithm's picture and costs.
template <const Pattern& (*pattern)()>
std::vector<Dimension> over_all(const Plan& plan, int) {
  return {Dimension(pattern(), plan.ranks(), 1)};
}

constexpr std::array kAlgorithms{
    Algorithm{"multi-ring", "rings along every dimension of the rank grid, side by side (DDL)", true, true, 1,
              multi_ring},
    Algorithm{"ring", "one ring over all ranks", false, true, 1, ring},
    Algorithm{"halving-doubling", "recursive halving, then doubling; any rank count", false, false, 1,
              over_all<halving_pattern>},
    Algorithm{"recursive-doubling", "everything to a partner at twice the distance, step by step", false,
              false, 1, over_all<doubling_pattern>},
    Algorithm{"direct", "two steps, everybody to everybody", false, false, 1, over_all<direct_pattern>},
    Algorithm{"pairwise", "everybody to everybody, one partner at a time", false, false, 1,
              over_all<pairwise_pattern>},
    Algorithm{"one-shot", "one step, everything to everybody", false, false, 1, over_all<one_shot_pattern>},
    Algorithm{"tree", "double binary tree", false, false, 2, tree},
    Algorithm{"chain-tree", "chains inside hosts, double binary trees between them (NCCL's tree)", false,
              true, 2, chain_tree},
    Algorithm{"parameter-server", "reduce to rank 0 and broadcast", false, false, 1, over_all<star_pattern>},
};

constexpr std::array kPatterns{ring_pattern,     halving_pattern,  direct_pattern, pairwise_pattern,
                               one_shot_pattern, doubling_pattern, star_pattern};

/// Reduces over one dimension after the other, and spreads over them on the way back; or does one of the two;
/// or an all-to-all over one after the other.
std::vector<Stage> stages_of(Collective collective, int dimensions) {
  std::vector<Stage> stages;
  if (collective == Collective::allreduce || collective == Collective::reduce_scatter)
    for (int i = 0; i < dimensions; ++i) stages.push_back({i, StageKind::reduce});
  if (collective == Collective::allreduce || collective == Collective::allgather)
    for (int i = dimensions; i > 0; --i) stages.push_back({i - 1, StageKind::spread});
  if (collective == Collective::alltoall)
    for (int i = 0; i < dimensions; ++i) stages.push_back({i, StageKind::alltoall});
  return stages;
}

bool can_make(const Pattern& pattern, Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return true;
    case Collective::reduce_scatter:
    case Collective::allgather:
      return pattern.outcome() == Outcome::scattered;
    case Collective::alltoall:
      return pattern.sends_straight();
  }
  return false;
}

/// The chunks that a lane of `count` elements is cut into: as many as the plan's chunk size asks for, at
/// least one, never more than it has elements of a block. Throws a usage Error when `lanes` such lanes would
/// have more than kMostStreams together.
int chunk_count(const Plan& plan, int lanes, Count count, int blocks, int element_size) {
  if (plan.chunk.value == 0) return 1;
  const Count per_chunk = std::max<Count>(1, static_cast<Count>(plan.chunk.value) / element_size);
  const Count chunks =
      std::clamp<Count>((count + per_chunk - 1) / per_chunk, 1, std::max<Count>(1, count / blocks));
  if (chunks > kMostStreams / lanes) {
    usage_error(
        "chunks of {} cut each of {} lanes into {}, and at most {} in all can be run; choose larger chunks",
        to_text(plan.chunk), lanes, chunks, kMostStreams);
  }
  return static_cast<int>(chunks);
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

std::vector<int> order_of_lane(const Plan& plan, int lane) {
  if (plan.orders.empty()) return {};
  return plan.orders[index(lane) % plan.orders.size()];
}

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return algorithm;
  }
  throw Error(ExitCode::usage, unknown_name("algorithm", name, strings(algorithm_names())));
}

bool same_moves(const Pattern& a, const Pattern& b, int n) {
  if (&a == &b) return true;
  if (a.steps(n) != b.steps(n) || a.spread_steps(n) != b.spread_steps(n)) return false;
  std::vector<Move> of_a;
  std::vector<Move> of_b;
  for (int member = 0; member < n; ++member) {
    if (a.holds(n, member) != b.holds(n, member)) return false;
    for (int step = 0; step < a.steps(n); ++step) {
      a.sends(n, step, member, of_a);
      b.sends(n, step, member, of_b);
    }
  }
  return of_a == of_b;
}

const Pattern* find_pattern(std::string_view name) {
  for (const auto pattern : kPatterns) {
    if (pattern().name() == name) return &pattern();
  }
  return nullptr;
}

std::vector<std::string_view> algorithm_names(Collective collective) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) {
    const Plan plan{std::string(algorithm.name)};
    if (algorithm.has_dims || can_make(plan, collective)) names.push_back(algorithm.name);
  }
  return names;
}

std::vector<std::string_view> pattern_names(Collective collective) {
  std::vector<std::string_view> names;
  for (const auto pattern : kPatterns)
    if (can_make(pattern(), collective)) names.push_back(pattern().name());
  return names;
}

bool can_make(const Plan& plan, Collective collective) {
  return std::ranges::all_of(
      find_algorithm(plan.algorithm).dimensions(plan, 0),
      [&](const Dimension& dimension) { return can_make(dimension.pattern(), collective); });
}

void check_collective(const Plan& plan, Collective collective) {
  if (collective == Collective::allreduce || can_make(plan, collective)) return;
  if (find_algorithm(plan.algorithm).has_dims) {
    usage_error("{} cannot make {}: each dimension needs one of the patterns {}", patterns_text(plan),
                to_text(collective), fmt::join(pattern_names(collective), ", "));
  }
  usage_error("{} cannot make {}; choose from {}", plan.algorithm, to_text(collective),
              fmt::join(algorithm_names(collective), ", "));
}

Schedule make_schedule(const Plan& plan, int ranks, Count count, int element_size, Collective collective) {
  check_plan(plan, ranks);
  check_collective(plan, collective);
  if (count < 0) usage_error("a payload of {} elements is impossible; give 0 or more", count);
  const Algorithm& algorithm = find_algorithm(plan.algorithm);
  const int lanes = algorithm.lanes_each * plan.lanes;
  Schedule schedule{plan.algorithm, ranks, count, {}, collective};
  const int blocks = schedule.blocks();
  if (count % blocks != 0) {
    usage_error("{} elements are no whole number of blocks for {} ranks; give a multiple of {}", count, ranks,
                blocks);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    const Slice in_block = part({0, count / blocks}, lane, lanes);
    const Slice slice{blocks * in_block.offset, blocks * in_block.count};
    std::vector<Dimension> dimensions = algorithm.dimensions(plan, lane);
    std::vector<Stage> stages = stages_of(collective, static_cast<int>(dimensions.size()));
    schedule.lanes.push_back({slice, chunk_count(plan, lanes, slice.count, blocks, element_size),
                              std::move(dimensions), std::move(stages)});
  }
  assert_well_formed(schedule);
  return schedule;
}

}  // namespace polyring
