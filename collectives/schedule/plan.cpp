#include "collectives/schedule/plan.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <sstream>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "collectives/schedule/algorithms/algorithms.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/pattern.hpp"

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

/// "DDL_OPTIONS" words: an option and its value.
int parse_positive(std::string_view text, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    usage_error("{} must be whole numbers of 1 or more joined by 'x', such as 4x8x8", what);
  }
  return value;
}

/// An order of `ranks` ranks has each of them once.
void check_order(const std::vector<int>& order, std::size_t ranks) {
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  if (sorted == all) return;
  usage_error("the order {} does not have each rank from 0 to {} once; give all of them in each lane's order",
              fmt::join(order, "-"), static_cast<int>(ranks) - 1);
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

std::vector<std::vector<int>> parse_orders(std::string_view text) {
  std::vector<std::vector<int>> orders(1);
  const std::string what = fmt::format("orders '{}'", text);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("-/", begin), text.size());
    int rank = 0;
    const auto [after, error] = std::from_chars(text.data() + begin, text.data() + end, rank);
    if (error != std::errc{} || after != text.data() + end)
      usage_error("{} must be ranks joined by '-', and lanes by '/', such as 0-1-3-2/2-3-1-0", what);
    orders.back().push_back(rank);
    if (end < text.size() && text[end] == '/') orders.emplace_back();
    begin = end + 1;
  }
  for (const std::vector<int>& order : orders) check_order(order, orders.front().size());
  return orders;
}

std::string orders_text(const std::vector<std::vector<int>>& orders) {
  std::vector<std::string> lanes;
  for (const std::vector<int>& order : orders) lanes.push_back(fmt::format("{}", fmt::join(order, "-")));
  return fmt::format("{}", fmt::join(lanes, "/"));
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
  if (std::ranges::any_of(plan.dims, [](int dim) { return dim < 1; }))
    usage_error("dimensions {} are impossible; give 1 or more for each", dims_text(plan.dims));
  if (plan.dims.empty() || plan.ranks() != ranks) {
    usage_error("dimensions {} make {} ranks, but there are {}; choose factors of {}", dims_text(plan.dims),
                plan.ranks(), ranks, ranks);
  }
  if (plan.lanes < 1 || plan.lanes > 1024) usage_error("{} lanes are impossible; give 1 to 1024", plan.lanes);
  if (!plan.orders.empty() && !algorithm.lanes_differ)
    usage_error("{} has no rings to put in order; leave the orders out", plan.algorithm);
  for (const std::vector<int>& order : plan.orders) {
    if (order.size() != static_cast<std::size_t>(plan.dims.front())) {
      usage_error("the order {} is of {} ranks, but the first dimension has {}; give an order of {}",
                  fmt::join(order, "-"), order.size(), plan.dims.front(), plan.dims.front());
    }
    check_order(order, order.size());
  }
  if (plan.patterns.empty()) return;
  if (!algorithm.has_dims) usage_error("{} has no patterns to choose; only multi-ring has", plan.algorithm);
  if (plan.patterns.size() != plan.dims.size()) {
    usage_error("{} patterns for {} dimensions; give one for each", plan.patterns.size(), plan.dims.size());
  }
  for (const std::string& pattern : plan.patterns) {
    if (find_pattern(pattern) == nullptr) {
      throw Error(ExitCode::usage, unknown_name("pattern", pattern, strings(pattern_names())));
    }
  }
}

Plan constrained(Plan plan, const PlanConstraints& constraints) {
  if (!constraints.dims.empty()) plan.dims = constraints.dims;
  if (!constraints.patterns.empty()) plan.patterns = constraints.patterns;
  if (constraints.lanes > 0) plan.lanes = constraints.lanes;
  if (constraints.chunk.value > 0) plan.chunk = constraints.chunk;
  if (!constraints.orders.empty()) plan.orders = constraints.orders;
  return plan;
}

std::string patterns_text(const Plan& plan) {
  if (!find_algorithm(plan.algorithm).has_dims) return "";
  if (plan.patterns.empty()) {
    const std::vector<std::string> rings(plan.dims.size(), std::string(ring_pattern().name()));
    return fmt::format("{}", fmt::join(rings, "+"));
  }
  return fmt::format("{}", fmt::join(plan.patterns, "+"));
}

bool is_all_rings(const Plan& plan) {
  return std::ranges::all_of(plan.patterns,
                             [](const std::string& pattern) { return pattern == ring_pattern().name(); });
}

std::string to_text(const Plan& plan, bool and_rings) {
  std::string text = fmt::format("{} {}, {} lane{}", plan.algorithm, dims_text(plan.dims), plan.lanes,
                                 plan.lanes == 1 ? "" : "s");
  if (!is_all_rings(plan) || (and_rings && !plan.patterns.empty()))
    text += fmt::format(", {}", fmt::join(plan.patterns, "+"));
  if (plan.chunk.value > 0) text += fmt::format(", chunks of {}", to_text(plan.chunk));
  if (!plan.orders.empty()) text += fmt::format(", rings {}", orders_text(plan.orders));
  return text;
}

}  // namespace polyring
