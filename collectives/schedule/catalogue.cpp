#include "collectives/schedule/catalogue.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "collectives/schedule/algorithms/algorithms.hpp"

namespace polyring {
namespace {

constexpr std::array kAlgorithms{
    Algorithm{"multi-ring", "rings along every dimension of the rank grid, side by side (DDL)", true, true,
              multi_ring},
    Algorithm{"ring", "one ring over all ranks", false, true, ring},
    Algorithm{"halving-doubling", "recursive halving, then doubling; any rank count", false, false,
              halving_doubling},
    Algorithm{"recursive-doubling", "everything to a partner at twice the distance, step by step", false,
              false, recursive_doubling},
    Algorithm{"direct", "two steps, everybody to everybody", false, false, direct},
    Algorithm{"one-shot", "one step, everything to everybody", false, false, one_shot},
    Algorithm{"tree", "double binary tree", false, false, tree},
    Algorithm{"chain-tree", "chains inside hosts, double binary trees between them (NCCL's tree)", false,
              true, chain_tree},
    Algorithm{"parameter-server", "reduce to rank 0 and broadcast", false, false, parameter_server},
};

constexpr std::array<const Pattern& (*)(), 6> kPatterns{ring_pattern,     halving_pattern,  direct_pattern,
                                                        one_shot_pattern, doubling_pattern, star_pattern};

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.name == name) return algorithm;
  }
  std::string known;
  for (const Algorithm& algorithm : kAlgorithms)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", algorithm.name);
  usage_error("unknown algorithm '{}'; choose from {}", name, known);
}

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const auto pattern : kPatterns) names.push_back(pattern().name());
  return names;
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

Schedule make_schedule(const Plan& plan, int ranks, Count count, int element_size) {
  check_plan(plan, ranks);
  if (count < 0) usage_error("a payload of {} elements is impossible; give 0 or more", count);
  Schedule schedule = find_algorithm(plan.algorithm).build(plan, count, element_size);
  assert_well_formed(schedule);
  return schedule;
}

}  // namespace polyring
