// The options that several subcommands share, and what they mean.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/cli/command_line.hpp"
#include "bench/cli/what_if.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/plan.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// Which hosts: --machine PRESET or FILE.toml, --from FILE…, --sysfs DIR, or this one; the fabric between
/// them; and what to assume of their rates; and what would be, were they different.
struct MachineOptions {
  std::vector<std::string>
      machines;  // presets, or files that describe some; several where add_to() allows it
  std::vector<std::string> files;
  std::string sysfs;                // a copy of another machine's
  std::vector<std::string> fabric;  // empty: as the preset or the file has it
  std::vector<std::string> assume;  // KEY=RATE, see assume.hpp
  std::optional<int> rails;         // nothing: all
  WhatIfOptions what_if;

  void add_to(Subcommand command, bool several = false);
  /// The first machine that is named; empty: none is.
  std::string preset() const { return machines.empty() ? "" : machines.front(); }
  bool is_live() const { return machines.empty() && files.empty() && sysfs.empty(); }
  /// The hosts that the options describe, at their own size. Throws a usage Error as preset(),
  /// read_inventory() and placed() do.
  Inventory inventory() const;
  /// These hosts on the fabric that the options name, with the rates and the rails that they ask for.
  Inventory on_fabric(Inventory hosts) const;
  /// As inventory(); what there is to note is printed on standard error.
  Inventory load() const;
  /// The preset's name, or the cluster's.
  std::string name(const Cluster& cluster) const;
};

/// nccl, mpi and in-network, which only `scale` models, without a schedule.
std::vector<std::string> modelled_algorithms();
/// False for these, true for all other names.
bool has_schedule(std::string_view algorithm);

/// How an allreduce is to be done.
struct PlanOptions {
  std::vector<std::string> algorithms;
  std::string dims;
  std::string ddl_options;
  std::vector<std::string> patterns;
  int lanes = 0;       // 0: chosen
  std::string chunk;   // empty: chosen
  std::string orders;  // empty: chosen

  /// `listed` and `unlisted`: names of algorithms beside our own, as in Names.
  void add_to(Subcommand command, std::vector<std::string> default_algorithms, bool several,
              Collective collective = Collective::allreduce, const std::vector<std::string>& listed = {},
              std::vector<std::string> unlisted = {});

  /// The dimensions asked for, if any, by --dims or --ddl-options. Throws a usage Error when both are given.
  std::optional<std::vector<int>> asked_dims() const;
  /// What --ddl-options asked for that has no meaning here, in words; empty when there is nothing.
  std::string ignored() const;
  /// Whether these choices are left to the algorithm, or all of them.
  bool asks_no_dims() const { return dims.empty() && ddl_options.empty() && patterns.empty(); }
  bool asks_nothing() const { return asks_no_dims() && lanes == 0 && chunk.empty() && orders.empty(); }
  /// Throws a usage Error for algorithms that `command` cannot plan, since they have no schedule.
  void refuse_without_schedule(std::string_view command) const;
  /// Throws Error(ExitCode::not_available) for those that can be modelled and not be measured.
  void refuse_modelled() const;
  /// What was asked for of this algorithm's plan: nothing of those of nccl and mpi.
  PlanConstraints constraints(std::string_view algorithm) const;
};

/// Throws a usage Error unless it is a time above 0, and one that clocks can count.
Seconds parse_timeout(const std::string& text, const char* option = "--timeout");

/// --model; `model` has its default, or nothing. `what` says what it is for.
Option add_model_option(Subcommand command, std::string& model, const std::string& what);
Option add_model_option(Subcommand command, std::optional<std::string>& model, const std::string& what);
/// -T, --timeout; `timeout` has its default.
void add_timeout_option(Subcommand command, std::string& timeout);

/// What a range of counts stands for: "2..7" is 2, 4, 7 where it doubles up to its end.
enum class Range { doubles, has_each };

/// A list such as `4,8,16`. Each part may be a range such as `4..256`. Throws a usage Error for
/// anything else, and for more than kMostCounts numbers.
std::vector<int> parse_counts(const std::string& text, const std::string& what, Range range = Range::doubles);
inline constexpr std::size_t kMostCounts = 10000;

/// --partials: float32 or same.
void add_partials_option(Subcommand command, std::string& partials);
/// Throws a usage Error for anything else.
Partials parse_partials(const std::string& text);

/// What is reduced.
struct PayloadOptions {
  std::string kind_text = "float";
  std::string op_text;

  /// Without an operation where `default_op` is empty.
  void add_to(Subcommand command, const std::string& default_op);
  ElementKind kind() const { return parse_element_kind(kind_text); }
  ReduceOp op() const { return parse_reduce_op(op_text); }
};

}  // namespace polyring
