// The keys of a result file, each named once: writing, reading and the schema visit the same lists.
#pragma once

#include <concepts>
#include <type_traits>

#include "reports/result.hpp"
#include "reports/round_change.hpp"

namespace polyring {

template <typename T, typename Plain>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Plain>;

/// What is to be known of a key beside its type.
struct About {
  const char* what = "";       // for people; empty where the key says it
  bool positive = false;       // a whole number that 0 makes no sense of
  bool may_be_absent = false;  // an optional value: where there is none, the file has no such key
};

/// `visit(key, member)` or `visit(key, member, About)`.
template <typename Visitor>
void fields(Visitor& visit, MaybeConst<Timing> auto& timing) {
  visit("median", timing.median);
  visit("ci_low", timing.ci_low);
  visit("ci_high", timing.ci_high);
  visit("min", timing.min);
  visit("p99", timing.p99);
  visit("samples", timing.samples, {.what = "In the order taken"});
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<CollectiveRow> auto& row) {
  visit("algorithm", row.algorithm);
  visit("implementation", row.implementation, {.what = "What ran it: a transport, or a vendor's call"});
  visit("dims", row.dims, {.what = "As 4x8x8; empty for a vendor's call"});
  visit("patterns", row.patterns, {.what = "As direct+ring, of each dimension of multi-ring; else empty"});
  visit("lanes", row.lanes);
  visit("chunk_bytes", row.chunk_bytes);
  visit("orders", row.orders,
        {.what = "As 0-1-3-2/2-3-1-0, of each lane's ring over a group of the first dimension; absent where "
                 "by rank",
         .may_be_absent = true});
  visit("same_as", row.same_as,
        {.what = "Another algorithm that does the same at this point, step by step; absent: none before it",
         .may_be_absent = true});
  visit("ranks", row.ranks, {.positive = true});
  visit("nodes", row.nodes, {.positive = true});
  visit("ranks_per_node", row.ranks_per_node, {.what = "0: hosts differ"});
  visit("size_bytes", row.size_bytes);
  visit("count", row.count, {.what = "Elements; of a rank's block where the collective has blocks"});
  visit("dtype", row.dtype);
  visit("op", row.op);
  visit("in_place", row.in_place);
  visit("time_us", row.time_us);
  visit("timing", row.timing,
        {.what =
             "isolated: a sample is one call on fresh input, the maximum over the ranks; osu: calls on "
             "the same buffers, each after a barrier; back-to-back: the same without barriers; blocking: the "
             "same, but a call is over before the next one begins; graph: calls back to back in a CUDA "
             "graph; a sample of these is the mean over a block of calls and over the ranks; absent: "
             "isolated",
         .may_be_absent = true});
  visit("algbw_GBps", row.algbw_GBps, {.what = "size / median, 1 GB/s = 1e9 B/s"});
  visit("busbw_GBps", row.busbw_GBps,
        {.what = "algbw * f (n - 1) / n, where f is 2 for an allreduce and 1 for the others"});
  visit("bound_us", row.bound_us, {.what = "The least time the topology allows"});
  visit("bound_fraction", row.bound_fraction,
        {.what = "bound_us / median; null where a time is less than its bound by more than noise"});
  visit("expected_us", row.expected_us,
        {.what = "The times of good implementations, from and to; absent where they are not known",
         .may_be_absent = true});
  visit("wrong", row.wrong,
        {.what = "Wrong elements, 1 where a log says only that there are some; null: not checked"});
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
  visit("buckets", plan.buckets, {.what = "Of this size, in a training step", .positive = true});
  visit("plan", plan.plan, {.what = "In words, with the algorithm"});
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<GpuShare> auto& share) {
  visit("activity", share.activity);
  visit("share", share.share,
        {.what = "Of the time of all activities together, which may overlap; null of idle time"});
  visit("time_ms", share.time_ms);
  visit("calls", share.calls);
}

/// What the rows of training and scaling have in common.
template <typename Visitor>
void run_fields(Visitor& visit, auto& row) {
  visit("machine", row.machine);
  visit("model", row.model);
  visit("algorithm", row.algorithm);
  visit("dims", row.dims);
  visit("patterns", row.patterns,
        {.what = "As direct+ring, of each of multi-ring's dimensions, for the largest bucket",
         .may_be_absent = true});
  visit("lanes", row.lanes);
  visit("chunk_bytes", row.chunk_bytes);
  visit("gpus", row.gpus, {.positive = true});
  visit("nodes", row.nodes, {.positive = true});
  visit("batch", row.batch, {.what = "Per GPU, which is a rank", .positive = true});
  visit("bucket", row.bucket);
  visit("overlap", row.overlap);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<TrainRow> auto& row) {
  run_fields(visit, row);
  visit("iteration_ms", row.iteration_ms);
  visit("images_per_second", row.images_per_second, {.what = "Of all ranks together"});
  visit("efficiency", row.efficiency, {.what = "Against one rank alone; 1 is ideal"});
  visit("exposed_comm_ms", row.exposed_comm_ms);
  visit("compute_ms", row.compute_ms);
  visit("compute_slowdown", row.compute_slowdown,
        {.what = "The computation's time beside communication, over that alone; absent: no GPU computed",
         .may_be_absent = true});
  visit("communication_ms", row.communication_ms,
        {.what = "Of the allreduces alone, per iteration; absent: no GPU computed", .may_be_absent = true});
  visit("gpu_profile", row.gpu_profile,
        {.what = "What the GPU of rank 0 did in one iteration; absent: no GPU computed",
         .may_be_absent = true});
  visit("samples", row.samples,
        {.what = "What images_per_second counts, if not images: sequences", .may_be_absent = true});
  visit("wrong", row.wrong);
  visit("timeline", row.timeline);
  visit("plans", row.plans,
        {.what = "Where buckets are of several sizes, or a plan has orders of its rings",
         .may_be_absent = true});
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<ScaleRow> auto& row) {
  run_fields(visit, row);
  visit("iteration_ms", row.iteration_ms);
  visit("images_per_second", row.images_per_second);
  visit("speedup", row.speedup, {.what = "Over the table's baseline"});
  visit("efficiency", row.efficiency);
  visit("exposed_comm_ms", row.exposed_comm_ms);
  visit("published_speedup", row.published_speedup);
  visit("published_efficiency", row.published_efficiency);
  visit("global_batch", row.global_batch,
        {.what = "Of all GPUs together, the same at all counts: strong scaling; absent: weak",
         .may_be_absent = true});
  visit("strategy", row.strategy,
        {.what = "As data=64,pipeline=4; absent: data parallel", .may_be_absent = true});
  visit("bubble", row.bubble,
        {.what = "Part of the iteration for which a pipeline's stage, on average, waits",
         .may_be_absent = true});
  visit("iteration_low_ms", row.iteration_low_ms,
        {.what = "With jitter: 95 % of the steps take from low to high", .may_be_absent = true});
  visit("iteration_high_ms", row.iteration_high_ms, {.may_be_absent = true});
  visit("efficiency_low", row.efficiency_low,
        {.what = "From low to high: what is not exactly known of a step; with a calibration, 95 % of its "
                 "predictions",
         .may_be_absent = true});
  visit("efficiency_high", row.efficiency_high, {.may_be_absent = true});
  visit("widest_unknown", row.widest_unknown,
        {.what = "What most of that range comes from", .may_be_absent = true});
  visit("samples", row.samples,
        {.what = "What images_per_second counts, if not images: sequences", .may_be_absent = true});
  visit("feed_GBps", row.feed_GBps,
        {.what = "Samples for all hosts, for steps not to wait for them", .may_be_absent = true});
  visit("limit", row.limit,
        {.what = "compute, network, data (file system) or data (NVMe)", .may_be_absent = true});
  visit("rails", row.rails, {.what = "NICs of a host that are used", .may_be_absent = true});
  visit("bottleneck", row.bottleneck,
        {.what = "What is busy longest in the allreduce of the largest bucket", .may_be_absent = true});
  visit("published_run", row.published_run,
        {.what = "A published training run that only checks the model; the row has its published_efficiency, "
                 "and the model's middle as efficiency; absent: the row is not such a check",
         .may_be_absent = true});
  visit("held_out", row.held_out,
        {.what = "Of a published_run; false: the model was compared with it before its costs were set",
         .may_be_absent = true});
  visit("framework", row.framework,
        {.what = "Of a published_run: whose costs the model has", .may_be_absent = true});
  visit("combinations", row.combinations,
        {.what = "Of a published_run: the range is over so many combinations of what was not published, and "
                 "efficiency is the mean of their middles; absent: of one",
         .positive = true,
         .may_be_absent = true});
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<TuneRow> auto& row) {
  visit("size_bytes", row.size_bytes);
  visit("ranks", row.ranks, {.positive = true});
  visit("nodes", row.nodes, {.positive = true});
  visit("transport", row.transport);
  visit("tried", row.tried, {.what = "Plans"});
  visit("default_plan", row.default_plan);
  visit("default_us", row.default_us);
  visit("other_plan", row.other_plan, {.what = "The fastest plan other than the default"});
  visit("other_us", row.other_us);
  visit("ratio", row.ratio, {.what = "default time / other time, the median over pairs"});
  visit("ratio_low", row.ratio_low, {.what = "95 % interval of the median"});
  visit("ratio_high", row.ratio_high);
  visit("other_chosen", row.other_chosen);
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<CheckRow> auto& row) {
  visit("check", row.check, {.what = "As pairs.allreduce"});
  visit("subject", row.subject, {.what = "What was judged, in words"});
  visit("hosts", row.hosts, {.what = "That it is about"});
  visit("verdict", row.verdict,
        {.what = "fail: what was checked is bad; error: the check broke; inconclusive: noise covers the "
                 "threshold; missing: asked for and not measured; skipped: cannot be measured here; "
                 "shown: measured, and not to be judged"});
  visit("why", row.why);
  visit("remedy", row.remedy, {.what = "What to do next"});
  visit("quantity", row.quantity, {.what = "As busbw; empty where nothing has a number"});
  visit("unit", row.unit, {.what = "Of value, least and most"});
  visit("value", row.value);
  visit("least", row.least, {.what = "The value passes from here on"});
  visit("most", row.most, {.what = "The value passes up to here"});
  visit("threshold_source", row.threshold_source);
  visit("size_bytes", row.size_bytes, {.what = "Of the payload; 0: there is none"});
  visit("attempts", row.attempts, {.what = "Measurements of it"});
  visit("seconds", row.seconds, {.what = "That they took"});
  visit("device", row.device,
        {.what = "cuda: the data were on GPUs; absent: they were in the hosts' memory, or there are none",
         .may_be_absent = true});
  visit("trend", row.trend,
        {.what = "Its median in each round that measured it; absent where there was one",
         .may_be_absent = true});
  visit("source", row.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<RankHost> auto& place) {
  visit("rank", place.rank);
  visit("host", place.host);
  visit(
      "gpu", place.gpu,
      {.what = "The bus address of the GPU that had the rank's data, as in machine; absent: they were in the "
               "host's memory",
       .may_be_absent = true});
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<LeafHosts> auto& leaf) {
  visit("name", leaf.name, {.what = "Of the switch; empty where it is not known"});
  visit("hosts", leaf.hosts);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<HostConditions> auto& conditions) {
  visit("host", conditions.host);
  visit("ranks", conditions.ranks, {.positive = true});
  visit("cpus", conditions.cpus, {.what = "Online"});
  visit("least_cpus_of_rank", conditions.least_cpus_of_rank,
        {.what = "To which a rank is bound; all of them where it is not"});
  visit("most_cpus_of_rank", conditions.most_cpus_of_rank);
  visit("elapsed_s", conditions.elapsed_s);
  visit("load_average", conditions.load_average, {.what = "Of the last minute before"});
  visit("own_cpus", conditions.own_cpus, {.what = "Used by the ranks, on average, in CPUs"});
  visit("other_cpus", conditions.other_cpus, {.what = "Used by other programs"});
  visit("stolen_cpus", conditions.stolen_cpus, {.what = "Given to others by a hypervisor"});
  visit("cpu_limit", conditions.cpu_limit, {.what = "Of control groups, in CPUs; null: none"});
  visit("throttled_s", conditions.throttled_s, {.what = "For which this limit held the ranks back"});
  visit("governor", conditions.governor, {.what = "Of the CPUs' frequency; empty where unknown"});
  visit("least_clock_MHz", conditions.least_clock_MHz,
        {.what = "Of the CPUs that ranks ran on, when they had measured; absent where unknown",
         .may_be_absent = true});
  visit("most_clock_MHz", conditions.most_clock_MHz, {.may_be_absent = true});
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<Input> auto& input) {
  visit("name", input.name);
  visit("value", input.value);
  visit("source", input.source);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<Rounds> auto& rounds) {
  visit("whole", rounds.whole, {.what = "That have come to their end"});
  visit("checks", rounds.checks, {.what = "That the round behind them has judged"});
  visit("seconds", rounds.seconds, {.what = "That all of it took"});
}

// In journals:

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<PlacedRow> auto& placed) {
  visit("at", placed.at);
  visit("row", placed.row);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<TrendPoint> auto& point) {
  visit("at", point.at);
  visit("median", point.median);
  visit("attempts", point.attempts);
  visit("seconds", point.seconds);
}

template <typename Visitor>
void fields(Visitor& visit, MaybeConst<RoundChange> auto& change) {
  visit("rounds", change.rounds);
  visit("rows", change.rows);
  visit("points", change.points);
}

/// All but the format, its version, the kind, the machine and the rows.
template <typename Visitor>
void fields(Visitor& visit, MaybeConst<ResultFile> auto& file) {
  visit("created", file.created, {.what = "ISO 8601, UTC"});
  visit("command", file.command);
  visit("title", file.title,
        {.what = "The title of charts and reports; absent: they make one from the rows",
         .may_be_absent = true});
  visit("polyring_version", file.polyring_version);
  visit("commit", file.commit);
  visit("placement", file.placement);
  visit("environment", file.environment, {.what = "Only allowed variables, see environment.cpp"});
  visit("versions", file.versions, {.what = "Of the MPI, the compiler and the libraries"});
  visit("leaves", file.leaves,
        {.what = "By which hosts were judged; absent: under each are as many hosts, in their order, as "
                 "machine says",
         .may_be_absent = true});
  visit("notes", file.notes);
  visit("inputs", file.inputs);
  visit("conditions", file.conditions,
        {.what = "What else each machine did meanwhile; absent where nothing was measured to its end",
         .may_be_absent = true});
  visit("partial", file.partial,
        {.what = "As 12 of 34 measurements, where the run was interrupted; absent: it came to its end",
         .may_be_absent = true});
  visit("rounds", file.rounds,
        {.what = "How far a run of several rounds has come; absent: it was of one", .may_be_absent = true});
  visit("ended", file.ended,
        {.what = "Why a run of accept ended early; absent: it came to its end, or could not say it",
         .may_be_absent = true});
}

}  // namespace polyring
