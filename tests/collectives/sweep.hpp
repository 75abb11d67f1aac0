// What the tests of verify, simulate and execute iterate: rank counts, awkward sizes, and every way to factor
// the ranks.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/plan.hpp"

namespace polyring::testing {

/// Every ordered factoring of n into factors of 2 and more; {{1}} for 1.
inline std::vector<std::vector<int>> factorings(int n) {
  if (n == 1) return {{1}};
  std::vector<std::vector<int>> result{{n}};
  for (int first = 2; first < n; ++first) {
    if (n % first != 0) continue;
    for (std::vector<int> rest : factorings(n / first)) {
      rest.insert(rest.begin(), first);
      result.push_back(std::move(rest));
    }
  }
  return result;
}

/// Sizes that tend to break schedules over n ranks.
inline std::vector<Count> awkward_counts(int n) {
  std::vector<Count> counts{0, 1, n - 1, n, 7 * n + 3};
  std::erase_if(counts, [](Count count) { return count < 0; });
  return counts;
}

/// All plans of an algorithm over n ranks: every factoring where it has dimensions, one and three lanes, and
/// chunks of two elements of `element_size`.
inline std::vector<Plan> plans_of(const Algorithm& algorithm, int n, int element_size) {
  std::vector<Plan> plans;
  const auto shapes = algorithm.has_dims ? factorings(n) : std::vector<std::vector<int>>{{n}};
  const Bytes small_chunk{static_cast<std::uint64_t>(n * element_size)};
  for (const std::vector<int>& dims : shapes) {
    plans.push_back({std::string(algorithm.name), dims, {}, 1, {}});
    plans.push_back({std::string(algorithm.name), dims, {}, 3, small_chunk});
    if (algorithm.has_dims) {
      for (const std::string_view pattern : pattern_names()) {
        std::vector<std::string> patterns(dims.size(), std::string(pattern));
        plans.push_back({std::string(algorithm.name), dims, patterns, 2, {}});
        if (dims.size() < 2 || pattern == "ring") continue;
        patterns.back() = "ring";
        plans.push_back({std::string(algorithm.name), dims, patterns, 2, small_chunk});
      }
    }
  }
  // With hosts, where these differ: lanes begin at different ranks of each.
  if (algorithm.name == "ring" || algorithm.name == "chain-tree") {
    for (const std::vector<int>& dims : factorings(n)) {
      plans.push_back({std::string(algorithm.name), dims, {}, 3, {}});
    }
  }
  // Orders of the first dimension: every other rank first, and the same from the end.
  for (const std::vector<int>& dims : factorings(n)) {
    if (!algorithm.lanes_differ || dims.front() < 3) continue;
    std::vector<int> order;
    for (const int first : {0, 1}) {
      for (int rank = first; rank < dims.front(); rank += 2) order.push_back(rank);
    }
    const std::vector<int> back(order.rbegin(), order.rend());
    plans.push_back({std::string(algorithm.name), dims, {}, 3, small_chunk, {order, back}});
  }
  return plans;
}

/// Those with blocks that the plan's patterns can make; all can make an allreduce.
inline std::vector<Collective> block_collectives_of(const Plan& plan) {
  std::vector<Collective> collectives;
  for (const Collective collective :
       {Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
    if (can_make(plan, collective)) collectives.push_back(collective);
  }
  return collectives;
}

/// Those and the allreduce.
inline std::vector<Collective> collectives_of(const Plan& plan) {
  std::vector<Collective> collectives = block_collectives_of(plan);
  collectives.push_back(Collective::allreduce);
  return collectives;
}

/// Who reaches whose memory; empty: nobody another's.
struct NamedReach {
  const char* name;
  std::function<bool(Rank, Rank)> reach;
};

inline const std::vector<NamedReach>& reaches() {
  static const std::vector<NamedReach> all{
      {"nobody's memory", nullptr},
      {"everybody's memory", [](Rank, Rank) { return true; }},
      {"their neighbour's", [](Rank a, Rank b) { return a / 2 == b / 2; }},
      {"that of three", [](Rank a, Rank b) { return a / 3 == b / 3; }}};
  return all;
}

/// Sizes of a block that tend to break schedules.
inline std::vector<Count> awkward_blocks() { return {0, 1, 2, 7, 13}; }

/// The catalogue's names, for parameterised suites.
inline std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms()) names.emplace_back(algorithm.name);
  return names;
}

/// A name as GoogleTest wants it.
inline std::string identifier(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

/// What the kernel can still give, in bytes; 0 when it does not say.
inline std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    file.ignore(100, '\n');
  }
  return 0;
}

}  // namespace polyring::testing
