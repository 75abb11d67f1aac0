#include "collectives/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "collectives/algorithms/algorithms.hpp"
#include "collectives/catalogue.hpp"
#include "collectives/pattern.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

/// The product, or nothing when it does not fit an int.
std::optional<int> product(const std::vector<int>& dims) {
  std::int64_t result = 1;
  for (const int dim : dims) {
    result *= dim;
    if (result > std::numeric_limits<int>::max()) return std::nullopt;
  }
  return static_cast<int>(result);
}

/// The divisor of n that is nearest below its square root.
int square_divisor(int n) {
  for (int divisor = static_cast<int>(std::sqrt(static_cast<double>(n))); divisor > 1; --divisor) {
    if (n % divisor == 0) return divisor;
  }
  return 1;
}

std::vector<int> without_ones(std::vector<int> dims) {
  std::erase(dims, 1);
  if (dims.empty()) dims.push_back(1);
  return dims;
}

bool hosts_alike(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const HostGroup& group) {
    return group.machine.ranks() == cluster.groups.front().machine.ranks();
  });
}

std::vector<std::vector<int>> candidate_dims(const Algorithm& algorithm, const Cluster& cluster) {
  std::vector<std::vector<int>> candidates{natural_dims(cluster)};
  if (!algorithm.has_dims || !hosts_alike(cluster)) return candidates;
  const int in_host = cluster.host(0).ranks();
  const int hosts = cluster.host_count();
  const int near = square_divisor(hosts);
  candidates.push_back(without_ones({in_host, near, hosts / near}));
  candidates.push_back(without_ones({in_host, hosts}));
  std::sort(candidates.begin() + 1, candidates.end());
  candidates.erase(std::unique(candidates.begin() + 1, candidates.end()), candidates.end());
  candidates.erase(std::remove(candidates.begin() + 1, candidates.end(), candidates.front()),
                   candidates.end());
  return candidates;
}

/// "DDL_OPTIONS" words: an option and its value.
int parse_positive(std::string_view text, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    usage_error("{} must be whole numbers of 1 or more joined by 'x', such as 4x8x8", what);
  }
  return value;
}

}  // namespace

int Plan::ranks() const { return product(dims).value_or(0); }

std::vector<int> parse_dims(std::string_view text) {
  std::vector<int> dims;
  const std::string what = fmt::format("dimensions '{}'", text);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    dims.push_back(parse_positive(text.substr(begin, end - begin), what));
    begin = end + 1;
  }
  if (!product(dims)) usage_error("{} multiply to more ranks than there can be; use fewer", what);
  return dims;
}

std::string dims_text(const std::vector<int>& dims) {
  std::string text;
  for (const int dim : dims) text += fmt::format("{}{}", text.empty() ? "" : "x", dim);
  return text;
}

DdlOptions parse_ddl_options(std::string_view text) {
  DdlOptions options;
  std::istringstream words{std::string(text)};
  for (std::string word, value; words >> word;) {
    const bool known = word == "-mode" || word == "-dump_iter" || word == "-dev_sync" || word == "-dbg_level";
    if (!known) {
      usage_error("unknown DDL option '{}'; known are -mode, -dump_iter, -dev_sync and -dbg_level", word);
    }
    if (!(words >> value)) usage_error("DDL option {} needs a value, such as -mode p:4x8x8", word);
    if (word != "-mode") {
      options.ignored.push_back(word);
      continue;
    }
    const std::size_t colon = value.find(':');
    const std::string mode = value.substr(0, colon);
    if (mode.size() != 1 || std::string_view("bnrmp").find(mode) == std::string_view::npos) {
      usage_error("unknown DDL mode '{}'; write it as -mode p:4x8x8, with b, n, r, m or p", value);
    }
    if (colon != std::string::npos) options.dims = parse_dims(std::string_view(value).substr(colon + 1));
  }
  return options;
}

void check_plan(const Plan& plan, int ranks) {
  if (ranks < 1) usage_error("{} ranks are impossible; give 1 or more", ranks);
  const Algorithm& algorithm = find_algorithm(plan.algorithm);
  if (plan.dims.empty() || plan.ranks() != ranks) {
    usage_error("dimensions {} make {} ranks, but there are {}; choose factors of {}", dims_text(plan.dims),
                plan.ranks(), ranks, ranks);
  }
  if (plan.lanes < 1 || plan.lanes > 1024) usage_error("{} lanes are impossible; give 1 to 1024", plan.lanes);
  if (plan.patterns.empty()) return;
  if (!algorithm.has_dims) usage_error("{} has no patterns to choose; only multi-ring has", plan.algorithm);
  if (plan.patterns.size() != plan.dims.size()) {
    usage_error("{} patterns for {} dimensions; give one for each", plan.patterns.size(), plan.dims.size());
  }
  for (const std::string& pattern : plan.patterns) {
    if (find_pattern(pattern) == nullptr) {
      usage_error("unknown pattern '{}'; choose from {}", pattern, fmt::join(pattern_names(), ", "));
    }
  }
}

std::vector<int> natural_dims(const Cluster& cluster) {
  if (!hosts_alike(cluster)) return {cluster.ranks()};
  const int hosts = cluster.host_count();
  const int per_leaf = cluster.fabric.hosts_per_leaf;
  const int in_host = cluster.host(0).ranks();
  if (per_leaf > 1 && hosts > per_leaf && hosts % per_leaf == 0) {
    return without_ones({in_host, per_leaf, hosts / per_leaf});
  }
  return without_ones({in_host, hosts});
}

Plan with_wishes(Plan plan, const PlanWishes& wishes) {
  if (!wishes.dims.empty()) plan.dims = wishes.dims;
  if (!wishes.patterns.empty()) plan.patterns = wishes.patterns;
  if (wishes.lanes > 0) plan.lanes = wishes.lanes;
  if (wishes.chunk.value > 0) plan.chunk = wishes.chunk;
  return plan;
}

std::vector<Plan> candidate_plans(std::string_view algorithm, const Cluster& cluster, Bytes payload,
                                  const PlanWishes& wishes) {
  constexpr std::uint64_t kSmallestChunk = 64 * 1024;
  const Algorithm& found = find_algorithm(algorithm);
  std::vector<Plan> plans;
  for (const std::vector<int>& dims : candidate_dims(found, cluster)) {
    for (const int lanes : {1, 2, 4}) {
      if (lanes > 1 && !found.lanes_differ) continue;
      for (const std::uint64_t chunks : {1u, 4u, 16u, 64u}) {
        const auto of_lane = static_cast<std::uint64_t>(wishes.lanes > 0 ? wishes.lanes : lanes);
        const std::uint64_t chunk = payload.value / (of_lane * chunks);
        if (chunks > 1 && chunk < kSmallestChunk) continue;
        Plan plan{std::string(algorithm), dims, {}, lanes, chunks == 1 ? Bytes{} : Bytes{chunk}};
        plan = with_wishes(std::move(plan), wishes);
        // What is wished for leaves fewer choices.
        if (std::find(plans.begin(), plans.end(), plan) == plans.end()) plans.push_back(std::move(plan));
      }
    }
  }
  return plans;
}

std::vector<std::vector<int>> rank_grids(int ranks, int ranks_per_node, int nodes) {
  std::vector<std::vector<int>> grids{{ranks}};
  if (ranks_per_node == 0) return grids;
  const int near = square_divisor(nodes);
  const int first = nodes == 1 ? square_divisor(ranks_per_node) : 1;
  for (std::vector<int> grid :
       {std::vector{ranks_per_node, nodes}, std::vector{ranks_per_node, near, nodes / near},
        std::vector{first, ranks_per_node / first, nodes}}) {
    grid = without_ones(std::move(grid));
    if (std::find(grids.begin(), grids.end(), grid) == grids.end()) grids.push_back(std::move(grid));
  }
  return grids;
}

int chunk_count(const Plan& plan, int lanes, Count count, int element_size) {
  if (plan.chunk.value == 0) return 1;
  const Count per_chunk = std::max<Count>(1, static_cast<Count>(plan.chunk.value) / element_size);
  const Count chunks = std::max<Count>(1, (count + per_chunk - 1) / per_chunk);
  if (chunks > kMostStreams / lanes) {
    usage_error("--chunk {} makes {} chunks of each of {} lanes, more than {} in all; give a larger one",
                to_text(plan.chunk), chunks, lanes, kMostStreams);
  }
  return static_cast<int>(chunks);
}

std::string patterns_text(const Plan& plan) {
  if (!find_algorithm(plan.algorithm).has_dims) return "";
  if (plan.patterns.empty()) {
    const std::vector<std::string> rings(plan.dims.size(), std::string(ring_pattern().name()));
    return fmt::format("{}", fmt::join(rings, "+"));
  }
  return fmt::format("{}", fmt::join(plan.patterns, "+"));
}

std::string to_text(const Plan& plan) {
  std::string text = fmt::format("{} {}, {} lane{}", plan.algorithm, dims_text(plan.dims), plan.lanes,
                                 plan.lanes == 1 ? "" : "s");
  if (!plan.patterns.empty()) text += fmt::format(", {}", fmt::join(plan.patterns, "+"));
  if (plan.chunk.value > 0) text += fmt::format(", chunks of {}", to_text(plan.chunk));
  return text;
}

}  // namespace polyring
