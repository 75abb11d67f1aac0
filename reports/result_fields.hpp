// The keys of a result file, each named once: writing and reading visit the same lists.
#pragma once

#include <concepts>
#include <type_traits>

#include "reports/result.hpp"

namespace polyring {

template <typename T, typename Plain>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Plain>;

/// The least value that a whole number may have.
struct AtLeast {
  int value = 0;
};

/// Marks an optional value that is left out of the file where there is none, as it is from older files.
struct MayBeAbsent {};

/// `visit(key, member)`, for whole numbers that 0 makes no sense of `visit(key, member, AtLeast{1})`.
template <typename Visitor>
void fields(Visitor& visit, MaybeConst<Timing> auto& timing) {
  visit("median", timing.median);
  visit("ci_low", timing.ci_low);
  visit("ci_high", timing.ci_high);
  visit("min", timing.min);
  visit("p99", timing.p99);
  visit("samples", timing.samples);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<CollectiveRow> auto& row) {
  visit("algorithm", row.algorithm);
  visit("implementation", row.implementation);
  visit("dims", row.dims);
  visit("patterns", row.patterns);
  visit("lanes", row.lanes);
  visit("chunk_bytes", row.chunk_bytes);
  visit("orders", row.orders, MayBeAbsent{});
  visit("ranks", row.ranks, AtLeast{1});
  visit("nodes", row.nodes, AtLeast{1});
  visit("ranks_per_node", row.ranks_per_node);
  visit("size_bytes", row.size_bytes);
  visit("count", row.count);
  visit("dtype", row.dtype);
  visit("op", row.op);
  visit("in_place", row.in_place);
  visit("time_us", row.time_us);
  visit("algbw_GBps", row.algbw_GBps);
  visit("busbw_GBps", row.busbw_GBps);
  visit("bound_us", row.bound_us);
  visit("bound_fraction", row.bound_fraction);
  visit("wrong", row.wrong);
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<TimelineSpan> auto& span) {
  visit("lane", span.lane);
  visit("label", span.label);
  visit("begin_ms", span.begin_ms);
  visit("end_ms", span.end_ms);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<BucketPlan> auto& plan) {
  visit("size_bytes", plan.size_bytes);
  visit("buckets", plan.buckets, AtLeast{1});
  visit("plan", plan.plan);
}

/// What the rows of training and scaling have in common.
template <typename Visitor>
void run_fields(Visitor& visit, auto& row) {
  visit("machine", row.machine);
  visit("model", row.model);
  visit("algorithm", row.algorithm);
  visit("dims", row.dims);
  visit("patterns", row.patterns, MayBeAbsent{});
  visit("lanes", row.lanes);
  visit("chunk_bytes", row.chunk_bytes);
  visit("gpus", row.gpus, AtLeast{1});
  visit("nodes", row.nodes, AtLeast{1});
  visit("batch", row.batch, AtLeast{1});
  visit("bucket", row.bucket);
  visit("overlap", row.overlap);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<TrainRow> auto& row) {
  run_fields(visit, row);
  visit("iteration_ms", row.iteration_ms);
  visit("images_per_second", row.images_per_second);
  visit("efficiency", row.efficiency);
  visit("exposed_comm_ms", row.exposed_comm_ms);
  visit("compute_ms", row.compute_ms);
  visit("wrong", row.wrong);
  visit("timeline", row.timeline);
  visit("plans", row.plans, MayBeAbsent{});
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<ScaleRow> auto& row) {
  run_fields(visit, row);
  visit("iteration_ms", row.iteration_ms);
  visit("images_per_second", row.images_per_second);
  visit("speedup", row.speedup);
  visit("efficiency", row.efficiency);
  visit("exposed_comm_ms", row.exposed_comm_ms);
  visit("published_speedup", row.published_speedup);
  visit("published_efficiency", row.published_efficiency);
  visit("global_batch", row.global_batch, MayBeAbsent{});
  visit("strategy", row.strategy, MayBeAbsent{});
  visit("bubble", row.bubble, MayBeAbsent{});
  visit("iteration_low_ms", row.iteration_low_ms, MayBeAbsent{});
  visit("iteration_high_ms", row.iteration_high_ms, MayBeAbsent{});
  visit("efficiency_low", row.efficiency_low, MayBeAbsent{});
  visit("efficiency_high", row.efficiency_high, MayBeAbsent{});
  visit("feed_GBps", row.feed_GBps, MayBeAbsent{});
  visit("limit", row.limit, MayBeAbsent{});
  visit("rails", row.rails, MayBeAbsent{});
  visit("bottleneck", row.bottleneck, MayBeAbsent{});
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<TuneRow> auto& row) {
  visit("size_bytes", row.size_bytes);
  visit("ranks", row.ranks, AtLeast{1});
  visit("nodes", row.nodes, AtLeast{1});
  visit("transport", row.transport);
  visit("tried", row.tried);
  visit("default_plan", row.default_plan);
  visit("default_us", row.default_us);
  visit("other_plan", row.other_plan);
  visit("other_us", row.other_us);
  visit("ratio", row.ratio);
  visit("ratio_low", row.ratio_low);
  visit("ratio_high", row.ratio_high);
  visit("other_chosen", row.other_chosen);
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<RankHost> auto& place) {
  visit("rank", place.rank);
  visit("host", place.host);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<Input> auto& input) {
  visit("name", input.name);
  visit("value", input.value);
  visit("source", input.source);
}

/// All but the format, its version, the kind, the machine and the rows.
template <typename Visitor>
void fields(Visitor& visit, MaybeConst<ResultFile> auto& file) {
  visit("created", file.created);
  visit("command", file.command);
  visit("polyring_version", file.polyring_version);
  visit("commit", file.commit);
  visit("placement", file.placement);
  visit("environment", file.environment);
  visit("versions", file.versions);
  visit("notes", file.notes);
  visit("inputs", file.inputs);
  visit("partial", file.partial, MayBeAbsent{});
}

}  // namespace polyring
