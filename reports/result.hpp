// Result files: what a run of a collective, of `train`, `scale` or `accept` leaves behind, and how it is read
// and written. `tune` leaves a file of its own kind; its rows are in its journal (journal.hpp) and in
// reports.
//
// One file holds rows of one kind, and everything needed to know how they came about. The JSON keys are the
// names of the members here; reports/result.schema.json, which follows from result_fields.hpp, describes them
// for other programs.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reports/environment.hpp"

namespace polyring {

/// Where a number comes from. `emulated`: real code over shaped links on one box. `imported`: another
/// benchmark's log.
enum class Source { measured, emulated, modelled, published, imported };
inline constexpr std::array kSources{Source::measured, Source::emulated, Source::modelled, Source::published,
                                     Source::imported};

std::string_view to_text(Source source);

/// How calls are timed.
enum class TimingMethod {
  isolated,      // a sample: one call on fresh input, the maximum over the ranks
  osu,           // as OSU's benchmarks: each call after a barrier, on the same buffers again and again
  back_to_back,  // as nccl-tests, and IMB with -sync off: calls follow each other without a barrier
  blocking,      // as nccl-tests with -z 2: the same, but a call is over before the next one begins
  graph,         // as nccl-tests with -G: calls back to back in a CUDA graph
};
// A sample of all but the first is the mean over the calls of a block, and over the ranks.
inline constexpr std::array kTimingMethods{TimingMethod::isolated, TimingMethod::osu,
                                           TimingMethod::back_to_back, TimingMethod::blocking,
                                           TimingMethod::graph};

/// "isolated", "osu", "back-to-back", "blocking" and "graph".
std::string_view to_text(TimingMethod method);

/// A series of timings and its summary (see statistics.hpp); the unit is in the name of the member that holds
/// it.
struct Timing {
  double median = 0;
  double ci_low = 0;
  double ci_high = 0;
  double min = 0;
  double p99 = 0;
  std::vector<double> samples;  // in the order in which they were taken; empty where only one time is known

  bool operator==(const Timing&) const = default;
};

/// Summarizes measured samples. They must not be empty.
Timing timing(std::vector<double> samples);
/// Whether `time` is less than `other` by more than noise: their intervals do not overlap.
bool is_faster(const Timing& time, const Timing& other);
/// A modelled or published time, or the one that a log has: exact, without samples.
Timing exact_timing(double value);

/// The names under which commands and files know them.
inline constexpr std::array<std::string_view, 4> kCollectives{"allreduce", "reduce-scatter", "allgather",
                                                              "alltoall"};

/// How our implementations begin where a whole collective is enqueued on the streams of GPUs.
inline constexpr std::string_view kOnStreams = "polyring on streams over ";

/// One way of doing a collective with one size.
struct CollectiveRow {
  std::string algorithm;       // "multi-ring", "ring", "mpi", …
  std::string implementation;  // what ran it: "threads", "mpi", "MPI_Allreduce", "ncclAllReduce", …
  std::string dims;            // "2x2"; empty for a vendor's call
  std::string patterns;        // "direct+ring", of each of multi-ring's dimensions; empty for all others
  int lanes = 0;               // 0 for a vendor's call
  /// Another algorithm that does the same at this point, step by step; nothing where there is none before.
  std::optional<std::string> same_as{};
  std::uint64_t chunk_bytes = 0;
  std::optional<std::string> orders;  // "0-1-3-2/2-3-1-0", of each lane's ring; nothing where by rank
  int ranks = 0;
  int nodes = 0;
  int ranks_per_node = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;  // elements; of a rank's block where the collective has blocks
  std::string dtype;
  std::string op;
  bool in_place = false;
  Timing time_us;
  std::optional<TimingMethod> timing;  // nothing where it is not known: files of earlier versions
  double algbw_GBps = 0;
  double busbw_GBps = 0;
  std::optional<double> bound_us;                    // the least time that the topology allows
  std::optional<std::vector<double>> expected_us{};  // of good implementations: from … to; nothing: not known
  std::optional<double>
      bound_fraction;  // bound_us / median; nothing where a time is less than its bound by more than noise
  std::optional<std::uint64_t> wrong;  // wrong elements; nothing when they were not checked
  Source source = Source::measured;

  bool operator==(const CollectiveRow&) const = default;
};

/// Sets time_us, and from it, size_bytes, ranks and bound_us also algbw_GBps, busbw_GBps and bound_fraction:
/// as in NVIDIA's nccl-tests (doc/PERFORMANCE.md) algbw = S / t and busbw = algbw * f (n - 1) / n, where f is
/// 2 for an allreduce and 1 for the others, 1 GB/s = 1e9 B/s, with the median for t. All are 0 where the time
/// is 0. There is no bound_fraction where the time is_faster() than the bound, which is a fault of the bound
/// then.
void set_time(CollectiveRow& row, Timing time_us, std::string_view collective);
/// Of a row that has its time: what good implementations take, if they reach such bus bandwidths, in GB/s.
void set_expected(CollectiveRow& row, double low_GBps, double high_GBps);

enum class TimelineLane { compute, communication };
inline constexpr std::array kTimelineLanes{TimelineLane::compute, TimelineLane::communication};

std::string_view to_text(TimelineLane lane);

/// One bar of a training step's timeline, in ms since the step's begin.
struct TimelineSpan {
  TimelineLane lane = TimelineLane::compute;
  std::string label;  // "forward", "backward", "bucket 3", …
  double begin_ms = 0;
  double end_ms = 0;

  bool operator==(const TimelineSpan&) const = default;
};

/// The plan for the buckets of one size.
struct BucketPlan {
  std::uint64_t size_bytes = 0;
  std::uint64_t buckets = 0;  // of a training step
  std::string plan;           // in words, with the algorithm

  bool operator==(const BucketPlan&) const = default;
};

/// What a GPU did in a training step, of one kind, as nvprof lists it.
struct GpuShare {
  std::string activity;         // "copies host to device", …; "idle": nothing
  std::optional<double> share;  // of the time of all activities together, which may overlap; nothing of idle
  double time_ms = 0;
  std::uint64_t calls = 0;

  bool operator==(const GpuShare&) const = default;
};

struct TrainRow {
  std::string machine;
  std::string model;
  std::string algorithm;
  // The plan for the largest bucket.
  std::string dims;
  std::optional<std::string> patterns;  // of each of multi-ring's dimensions
  int lanes = 0;
  std::uint64_t chunk_bytes = 0;
  int gpus = 0;  // ranks
  int nodes = 0;
  int batch = 0;       // per rank
  std::string bucket;  // the policy's text: "none", "fused:64MiB", "per-tensor"
  bool overlap = false;
  Timing iteration_ms;
  double images_per_second = 0;  // of all ranks together; or of what `samples` says
  double efficiency = 0;         // images_per_second / (gpus * that of one rank alone), 1 is ideal
  double exposed_comm_ms = 0;    // communication that no computation hides, per iteration
  double compute_ms = 0;         // per iteration
  // Where a GPU computes.
  std::optional<double> compute_slowdown{};            // of the computation, beside communication
  std::optional<double> communication_ms{};            // of the allreduces alone, per iteration
  std::optional<std::vector<GpuShare>> gpu_profile{};  // of rank 0's GPU, in one iteration
  std::optional<std::string> samples{};                // what is counted, if not images: "sequences"
  std::optional<std::uint64_t> wrong;
  std::vector<TimelineSpan> timeline;            // of one iteration; may be empty
  std::optional<std::vector<BucketPlan>> plans;  // by size, where there are several, or orders
  Source source = Source::measured;

  bool operator==(const TrainRow&) const = default;
};

struct ScaleRow {
  std::string machine;
  std::string model;
  std::string algorithm;
  // The plan for the largest bucket.
  std::string dims;
  std::optional<std::string> patterns;  // of each of multi-ring's dimensions
  int lanes = 0;
  std::uint64_t chunk_bytes = 0;
  int gpus = 0;
  int nodes = 0;
  int batch = 0;  // per GPU
  std::string bucket;
  bool overlap = false;
  double iteration_ms = 0;
  double images_per_second = 0;  // or of what `samples` says
  double speedup = 0;            // over the table's baseline, which may be one whole node
  double efficiency = 0;         // 1 is ideal
  double exposed_comm_ms = 0;
  std::optional<double> published_speedup;
  std::optional<double> published_efficiency;
  // Of rows that have it only:
  std::optional<int> global_batch;         // of all GPUs together, the same at all counts: strong scaling
  std::optional<std::string> strategy;     // "data=64,pipeline=4"
  std::optional<double> bubble;            // part of the iteration for which a stage, on average, waits
  std::optional<double> iteration_low_ms;  // with jitter: 95 % of the steps take from low to high
  std::optional<double> iteration_high_ms;
  // From low to high: what is not exactly known of a step; with a calibration, 95 % of its predictions.
  std::optional<double> efficiency_low;
  std::optional<double> efficiency_high;
  std::optional<std::string> samples;         // what is counted, if not images: "sequences"
  std::optional<std::string> widest_unknown;  // what the width of that comes from most
  std::optional<double> feed_GBps;            // samples for all hosts, for steps not to wait for them
  std::optional<std::string> limit;           // "compute", "network", "data (file system)" or "data (NVMe)"
  std::optional<int> rails;                   // NICs of a host that are used
  std::optional<std::string> bottleneck;      // what is busy longest in the allreduce, in words
  // Of rows that set a published training run beside the model (see published_runs.hpp): `efficiency` is the
  // middle.
  std::optional<std::string> published_run;  // its name in the list of such runs
  std::optional<bool> held_out;          // false: the model was compared with it before its costs were set
  std::optional<std::string> framework;  // whose costs the model has
  std::optional<int> combinations;       // of what was not published, which the range is over; nothing: one
  Source source = Source::modelled;

  bool operator==(const ScaleRow&) const = default;
};

/// One payload of `polyring tune`: the default plan, and the best other one.
struct TuneRow {
  std::uint64_t size_bytes = 0;
  int ranks = 0;
  int nodes = 0;
  std::string transport;
  std::uint64_t tried = 0;  // plans
  std::string default_plan;
  double default_us = 0;
  std::string other_plan;
  double other_us = 0;
  double ratio = 0;  // default time / other time, the median over pairs of samples, with its 95 % interval
  double ratio_low = 0;
  double ratio_high = 0;
  bool other_chosen = false;
  Source source = Source::measured;

  bool operator==(const TuneRow&) const = default;
};

enum class Verdict {
  pass,
  fail,          // what was checked is bad
  error,         // the check itself broke
  inconclusive,  // measured as often as allowed, and noise still covers the threshold
  missing,       // asked for, and not measured
  skipped,       // it cannot be measured here, and nobody asked for it
  shown,         // measured, and not to be judged
};
inline constexpr std::array kVerdicts{Verdict::pass,         Verdict::fail,    Verdict::error,
                                      Verdict::inconclusive, Verdict::missing, Verdict::skipped,
                                      Verdict::shown};

/// Whether it says whether something is good.
constexpr bool is_judgement(Verdict verdict) {
  return verdict != Verdict::skipped && verdict != Verdict::shown;
}

std::string_view to_text(Verdict verdict);

/// One thing that `polyring accept` has judged.
struct CheckRow {
  std::string check{};               // "pairs.allreduce"
  std::string subject{};             // "node03", "node03 and node07", "rank 5 on node02", "all hosts"
  std::vector<std::string> hosts{};  // that it is about
  Verdict verdict = Verdict::missing;
  std::string why{};                    // one sentence: the number, the threshold and where that comes from
  std::string remedy{};                 // what to do next, one sentence; empty where there is nothing to do
  std::string quantity{};               // "busbw"; empty where nothing has a number
  std::string unit{};                   // of value, least and most
  std::optional<Timing> value{};        // with its samples, where there are any
  std::optional<double> least{};        // thresholds: the value passes from here …
  std::optional<double> most{};         // … to here
  std::string threshold_source{};       // "expected", "baseline accept.json", "spec site.toml:12", …
  std::uint64_t size_bytes = 0;         // of the payload; 0: there is none
  int attempts = 0;                     // measurements of it
  double seconds = 0;                   // that they took
  std::optional<std::string> device{};  // "cuda": the data were on GPUs; nothing: in the hosts' memory
  std::optional<std::vector<double>> trend{};  // its median in each of several rounds; nothing: there was one
  Source source = Source::measured;

  bool operator==(const CheckRow&) const = default;
};

/// Which host a rank ran on, and which of its GPUs had the data.
struct RankHost {
  int rank = 0;
  std::string host;
  std::optional<std::string> gpu{};  // its bus address; nothing: the data were in the host's memory

  bool operator==(const RankHost&) const = default;
};

/// A leaf switch, and those of the run's hosts that hang on it.
struct LeafHosts {
  std::string name;  // "leaf07"; empty where it is not known
  std::vector<std::string> hosts;

  bool operator==(const LeafHosts&) const = default;
};

/// What else a machine did while its ranks measured. `_cpus` are means over that time, in CPUs.
struct HostConditions {
  std::string host;
  int ranks = 0;
  int cpus = 0;                // online
  int least_cpus_of_rank = 0;  // to which a rank is bound: all of them where it is not
  int most_cpus_of_rank = 0;
  double elapsed_s = 0;
  double load_average = 0;                  // of the last minute before
  double own_cpus = 0;                      // used by the ranks
  double other_cpus = 0;                    // used by other programs
  double stolen_cpus = 0;                   // given to others by a hypervisor
  std::optional<double> cpu_limit;          // of control groups, in CPUs
  double throttled_s = 0;                   // for which this limit held them back
  std::string governor;                     // of the CPUs' frequency; empty where unknown
  std::optional<double> least_clock_MHz{};  // of the CPUs that ranks ran on, when they had measured
  std::optional<double> most_clock_MHz{};   // nothing: unknown

  bool operator==(const HostConditions&) const = default;
};

/// How far the rounds of `polyring accept --duration` have come.
struct Rounds {
  int whole = 0;                      // that have come to their end
  std::vector<std::string> checks{};  // that the round behind them has judged
  double seconds = 0;                 // that all of it took

  bool operator==(const Rounds&) const = default;
};

/// An input of a model, and where it was read.
struct Input {
  std::string name;
  std::string value;  // with its unit
  std::string source;

  bool operator==(const Input&) const = default;
};

/// The one kind of rows that a file holds.
using Rows = std::variant<std::vector<CollectiveRow>, std::vector<TrainRow>, std::vector<ScaleRow>,
                          std::vector<TuneRow>, std::vector<CheckRow>>;

struct ResultFile {
  std::string created;                 // ISO 8601, UTC: see iso_time_now()
  std::string command;                 // the command line
  std::optional<std::string> title{};  // of charts and reports; nothing: they make one from the rows
  std::string polyring_version;
  std::string commit;
  std::vector<RankHost> placement;
  std::map<std::string, std::string> environment;  // see recorded_environment()
  std::map<std::string, std::string> versions;     // of the MPI, the compiler, hwloc, …
  std::string machine = "null";                    // JSON text, kept as it is
  /// By which hosts were judged. Nothing: under each are as many hosts, in their order, as `machine` says.
  std::optional<std::vector<LeafHosts>> leaves{};
  std::vector<std::string> notes;
  std::vector<Input> inputs;
  std::optional<std::vector<HostConditions>> conditions;  // of a run that has measured to its end
  std::optional<std::string> partial;    // "12 of 34 measurements"; nothing for a run that came to its end
  std::optional<Rounds> rounds{};        // of one with --duration
  std::optional<std::string> ended{};    // why a run of `accept` ended early, which has told its verdict
  std::string collective = "allreduce";  // of such rows
  Rows rows;

  /// That of kCollectives, "train", "scale", "tune" or "accept".
  std::string_view kind() const;

  bool operator==(const ResultFile&) const = default;
};

/// Whether data were on the software GPU of the tests, on which times say nothing.
bool is_of_software_gpu(const ResultFile& result);

/// Now, as in "2025-03-01T12:34:56Z".
std::string iso_time_now();

/// Reads a result, or a journal as a partial one. Throws a usage Error, one sentence that names the file and
/// the key, when the file is missing, truncated, not JSON, not a result file, of a newer version, or when a
/// key is missing, of a wrong type or out of range.
ResultFile read_result(const std::filesystem::path& path);

/// Writes `file` and returns the path written: `path`, or with .1, .2, … appended where that exists already.
/// Appears whole or not at all. Throws as create_file() does; names of the environment that
/// recorded_environment() would not give are left out. Numbers must be finite and `machine` must be JSON.
std::filesystem::path write_result(const std::filesystem::path& path, const ResultFile& file);

/// Throws a usage Error when no file can be created at `path`, and an Error (output) when the disk is full.
/// To be called before a long measurement.
void check_writable(const std::filesystem::path& path);

}  // namespace polyring
