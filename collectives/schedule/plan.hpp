// Plan: the choices behind a schedule (dimensions, patterns, lanes, chunk size), their check, and their text
// forms.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

struct Plan {
  std::string algorithm = "multi-ring";
  std::vector<int> dims{1};             // their product is the number of ranks; the first lies inside a host
  std::vector<std::string> patterns{};  // of each dimension, for multi-ring; empty: ring everywhere
  int lanes = 1;
  Bytes chunk{};  // of one lane; 0: a lane is one chunk
  /// By lane, and from the first again, the order in which its ring passes the ranks of a group of the first
  /// dimension; empty: by rank. Only of algorithms whose lanes differ.
  std::vector<std::vector<int>> orders{};

  int ranks() const;
  bool operator==(const Plan&) const = default;
};

/// `4x8x8`. Throws a usage Error unless it is positive whole numbers joined by 'x'.
std::vector<int> parse_dims(std::string_view text);
std::string dims_text(const std::vector<int>& dims);

/// `0-1-3-2/2-3-1-0`. Throws a usage Error unless each is the whole numbers from 0 in some order, all equally
/// many.
std::vector<std::vector<int>> parse_orders(std::string_view text);
std::string orders_text(const std::vector<std::vector<int>>& orders);

/// What `--ddl-options` text asks for, e.g. `-mode p:4x8x8 -dump_iter 100`.
struct DdlOptions {
  std::vector<int> dims;             // empty when there is no -mode: one ring over all ranks
  std::vector<std::string> ignored;  // options that mean nothing here
};

/// Throws a usage Error for an unknown option or a mode other than b, n, r, m, p.
DdlOptions parse_ddl_options(std::string_view text);

/// Throws a usage Error when the plan cannot be for this many ranks: unknown algorithm or pattern, dimensions
/// whose product is another number, fewer than one lane, orders of other ranks than the first dimension's.
void check_plan(const Plan& plan, int ranks);

/// Choices that a user has fixed; the others are free.
struct PlanConstraints {
  std::vector<int> dims{};
  std::vector<std::string> patterns{};
  int lanes = 0;
  Bytes chunk{};
  std::vector<std::vector<int>> orders{};

  bool operator==(const PlanConstraints&) const = default;
};

/// The plan, with its own choices replaced where a constraint fixes them.
Plan constrained(Plan plan, const PlanConstraints& constraints);

/// `direct+ring`; empty when the algorithm has none to choose.
std::string patterns_text(const Plan& plan);

/// Whether each dimension is a ring, or the algorithm has no patterns to choose.
bool is_all_rings(const Plan& plan);

/// One line, of all of the plan: `multi-ring 4x64, 2 lanes, direct+ring, chunks of 1MiB, rings
/// 0-1-3-2/2-3-1-0`. Patterns that are all rings are named with `and_rings` alone.
std::string to_text(const Plan& plan, bool and_rings = false);

}  // namespace polyring
