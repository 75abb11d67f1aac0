// polyring allreduce, reduce-scatter, allgather and alltoall: measure one collective, done in several ways
// side by side, verified.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/cli/sizes.hpp"
#include "bench/cli/timing.hpp"
#include "bench/commands/command.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/measure/bounds.hpp"
#include "bench/measure/measure.hpp"
#include "bench/measure/memory_pass.hpp"
#include "bench/predict/expected_interval.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/result_file.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/memory_check.hpp"
#include "bench/session/session.hpp"
#include "models/model.hpp"
#include "reports/tables.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

struct CollectiveOptions {
  Collective collective = Collective::allreduce;
  ContenderOptions contenders;
  PayloadOptions payload;
  SizeOptions sizes;
  std::string model;
  int iterations = 0;
  int warmup = 5;
  int check = 1;
  TimingOptions timing;
  std::string values{to_text(PayloadValues::whole)};
  std::string buffers = "library";
  MeasuringOptions measuring;
  std::string output;
};

/// Numbers of elements of the longer buffer, ascending. Where it has blocks, those are of equally many
/// elements, at least one.
std::vector<Count> counts_of(const CollectiveOptions& options, int element_size, int ranks) {
  std::set<Count> counts;
  if (options.model.empty()) {
    const Count blocks = blocks_of(options.collective, ranks);
    for (const Count count : options.sizes.counts(element_size))
      counts.insert(std::max<Count>(1, count / blocks) * blocks);
    return {counts.begin(), counts.end()};
  }
  for (const Tensor& tensor : make_model(options.model).gradients) counts.insert(tensor.elements());
  return {counts.begin(), counts.end()};
}

/// One measurement: all contenders with one payload.
struct Point {
  Count count = 0;
  bool in_place = false;
};

class CollectiveRun {
 public:
  CollectiveRun(const CollectiveOptions& options, const MeasuringRun& run)
      : options_(options),
        run_(run),
        world_(run.world),
        kind_(options.payload.kind()),
        op_(options.payload.op()),
        timing_(options.timing.resolve(options.contenders.transport.gpu.on_gpu())),
        payload_(kind_, op_, world_.size(), parse_payload_values(options.values)),
        counts_(counts_of(options, size_of(kind_), world_.size())),
        gpus_(gpu_hosts(world_, options.contenders.transport.gpu, run.own_host)),
        maker_(options.contenders, world_, run.timeout,
               {.collective = options.collective, .kind = kind_, .op = op_}, gpus_) {}

  ExitCode run() {
    check();
    Session session(world_);
    measure_all(session);
    run_.add_conditions(session, maker_.names());
    on_root(world_, [&] { finish(session); });
    return right_ ? ExitCode::ok : ExitCode::wrong_result;
  }

 private:
  /// All that can be wrong with the options, before anything is measured.
  void check() {
    maker_.check(counts_.back());
    Seconds head_start;
    on_root(world_, [&] {
      check_output(options_.output);
      source_ = source_here();
      head_start = emulated_head_start();
    });
    if (options_.contenders.transport.gpu.is_software()) source_ = Source::emulated;
    cluster_ = gpus_ ? gpus_->cluster : host_memory_cluster(world_);
    if (!on_gpu()) bounds_ = Bounds(cluster_, head_start, options_.collective);
    const std::string ignored = options_.contenders.plan.ignored();
    if (world_.rank() == 0 && !ignored.empty()) warn(ignored);
  }

  std::uint64_t bytes(Count count) const { return bytes_of(count, kind_).value; }

  void measure_all(Session& session) {
    const std::unique_ptr<Communicator> opened = run_.connect(options_.contenders.transport);
    Communicator& communicator = *opened;
    const Job job = run_.job(communicator);
    fit_memory(communicator);
    const PayloadMemory memory = payload_memory(job.transport, counts_.back());
    std::optional<PayloadMemory> of_nccl;
    if (maker_.registers()) of_nccl = maker_.registered_memory(counts_.back());
    open(session, communicator);
    const MeasureOptions how{
        {options_.iterations, options_.warmup}, options_.check != 0, timing_, options_.timing.graphs};
    for (const Count count : counts_) {
      std::vector<Contender> contenders = maker_.make(communicator, count);
      for (Contender& contender : contenders)
        contender.buffers = (of_nccl && is_nccls_call(contender.algorithm) ? *of_nccl : memory).buffers();
      if (has_memory_bound(Bytes{bytes(count)})) {
        for (Contender& pass : make_memory_passes(kind_, count, memory.buffers()))
          contenders.push_back(std::move(pass));
      }
      for (const bool in_place : placements()) {
        session.step(
            fmt::format("{} {}", to_text(Bytes{bytes(count)}), in_place ? "in place" : "out of place"));
        const MeasuredCall call{payload_, maker_.what(count), in_place};
        const auto samples = measure(contenders, job, call, how);
        keep(session, {count, in_place}, contenders, samples);
      }
      if (world_.rank() == 0) session.print_rows();
    }
  }

  /// Whether passes over the memory are timed beside the algorithms.
  bool has_memory_bound(Bytes size) const {
    return collective() == Collective::allreduce && world_.nodes() == 1 && world_.size() > 1 &&
           size >= kLeastMemoryBound && !on_gpu();
  }

  /// Then what is known of the hosts' memory says nothing about the data.
  bool on_gpu() const { return options_.contenders.transport.gpu.on_gpu(); }

  Collective collective() const { return options_.collective; }
  int blocks() const { return blocks_of(collective(), world_.size()); }

  /// Whether in place: an alltoall is not.
  std::vector<bool> placements() const {
    if (collective() == Collective::alltoall) return {false};
    return {false, true};
  }

  /// One pair of buffers for all, as payloads may be large. Vendors' calls alone have memory from anywhere,
  /// as their callers usually do.
  PayloadMemory payload_memory(Transport& transport, Count count) const {
    return PayloadMemory(transport, kind_, count, options_.buffers == "library" && !all_vendors());
  }

  bool all_vendors() const {
    return std::all_of(maker_.names().begin(), maker_.names().end(), is_vendors_call);
  }
  bool any_vendor() const {
    return std::any_of(maker_.names().begin(), maker_.names().end(), is_vendors_call);
  }

  /// Leaves sizes out that would take more memory than there is. Collective.
  void fit_memory(const Communicator& communicator) {
    const auto need = [&](Count largest) {
      MemoryCount memory(communicator.transport());
      largest -= largest % blocks();
      const PayloadMemory payloads = payload_memory(memory, largest);
      std::optional<PayloadMemory> of_nccl;
      if (maker_.registers()) of_nccl = payload_memory(memory, largest);
      const MeasureMemory measuring(memory, maker_.what(largest));
      const Bytes longest{bytes(largest)};
      const Memory of_vendors = memory.host(maker_.vendors_memory(longest, longest));
      std::set<Count> counts(counts_.begin(), counts_.end());
      counts.erase(counts.upper_bound(largest), counts.end());
      counts.insert(largest);
      for (const Count count : counts) {
        for (const auto& call : maker_.make_planned_over(memory, communicator, count)) {
          call->run(payloads.buffers().input, payloads.buffers().output);
          if (collective() == Collective::allreduce)
            call->run(payloads.buffers().output, payloads.buffers().output);
        }
      }
      return memory.most();
    };
    const Fitting fitting = fit_counts(world_, counts_, size_of(kind_), options_.model.empty(), need,
                                       memory_room(world_, options_.contenders.transport.gpu));
    counts_.resize(fitting.counts);
    lowered_ = fitting.sentence;
    if (world_.rank() == 0 && !lowered_.empty()) warn(lowered_);
  }

  /// With all that is known before anything is measured. Collective.
  void open(Session& session, const Communicator& communicator) {
    std::vector<CollectiveRow> expected;
    std::vector<double> weights;
    // With -n, the time of a measurement grows with the payload. Without, small payloads get more iterations,
    // so that the time only grows from about kFewest bytes on, where the number is at its least.
    constexpr double kAlways = 64 << 10;
    constexpr double kFewest = 64 << 20;
    for (const Count count : counts_) {
      same_as_[count] = maker_.same_as(communicator, count);
      for (const bool in_place : placements()) {
        weights.push_back(static_cast<double>(bytes(count)) + (options_.iterations > 0 ? kAlways : kFewest));
        for (const std::string& name : maker_.names()) {
          if (in_place && !maker_.works_in_place(name)) continue;
          CollectiveRow row = described(name, maker_.plan(name, communicator, count), {count, in_place});
          set_wide_time(row);
          expected.push_back(std::move(row));
        }
      }
    }
    on_root(world_, [&] { session.open(outline(expected, std::move(weights))); });
  }

  Session::Outline outline(const std::vector<CollectiveRow>& expected, std::vector<double> weights) const {
    Session::Outline outline;
    outline.output = options_.output;
    outline.header = run_.header(&cluster_);
    outline.header.collective = to_text(collective());
    options_.contenders.transport.gpu.describe(outline.header, gpus_);
    if (world_.size() == 1)
      outline.header.notes.push_back(fmt::format("One rank: there is nothing to {}, only copies are timed.",
                                                 reduces(collective()) ? "reduce across" : "exchange"));
    if (options_.buffers == "library" && any_vendor() && !all_vendors())
      outline.header.notes.push_back(
          fmt::format("All calls, the vendors' too, used the same buffers, of our own allocator{}.",
                      maker_.registers() ? "; only NCCL had its own" : ""));
    if (parse_payload_values(options_.values) == PayloadValues::special)
      outline.header.notes.push_back(
          "The payload is of special values, with which processors may take longer.");
    if (!lowered_.empty()) outline.header.notes.push_back(fmt::format("Memory: {}.", lowered_));
    if (const auto left_out = maker_.left_out()) outline.header.notes.push_back(*left_out + ".");
    outline.header.rows = std::vector<CollectiveRow>{};
    outline.planned = expected.size();
    outline.title = fmt::format(
        "{}{} on {}, {}{}\n\n", collective() == Collective::allreduce ? "" : to_text(collective()) + " of ",
        counted(world_.size(), "rank"), counted(world_.nodes(), "host"), world_.kind(),
        world_.size() == 1 ? "; for more, start this by mpirun -np 4, or with -g 4" : "");
    const Table wide = collective_table(expected);
    const bool fits = format() == Format::markdown || wide.length(wide.widths()) <= line_length();
    outline.table = [how = fits ? Placements::side_by_side : Placements::below](const Rows& rows) {
      return collective_table(std::get<std::vector<CollectiveRow>>(rows), how);
    };
    outline.expected = outline.table(expected);
    outline.weights = std::move(weights);
    return outline;
  }

  /// As wide as times get to be, of as many samples as there will be.
  void set_wide_time(CollectiveRow& row) const {
    constexpr double kWide_us = 999'999;
    constexpr double kWideBandwidth = 99.99;
    constexpr int kEnough = 10;
    const bool counted = options_.iterations > 0 && timing_ == TimingMethod::isolated;
    const int samples = counted ? options_.iterations : kEnough;
    row.time_us = exact_timing(kWide_us);
    row.time_us.samples.resize(static_cast<std::size_t>(std::min(samples, kEnough)), kWide_us);
    row.algbw_GBps = row.busbw_GBps = kWideBandwidth;
    const Bytes size{row.size_bytes};
    if (has_memory_bound(size) || bounds_.of_topology_known(size)) row.bound_fraction = 1;
    if (options_.check != 0) row.wrong = 0;
  }

  void keep(Session& session, Point point, const std::vector<Contender>& contenders,
            const std::vector<Samples>& samples) {
    const std::size_t named = maker_.names().size();
    const auto bound_us = bounds_.bound_us(Bytes{bytes(point.count)}, std::span(samples).subspan(named),
                                           std::span(samples).first(named));
    for (const Samples& of_contender : samples) stragglers_.add(of_contender.stragglers);
    std::vector<CollectiveRow> timed;
    for (std::size_t i = 0; i < named; ++i) {
      if (point.in_place && !contenders[i].in_place) continue;
      ++measured_;
      CollectiveRow row = described(contenders[i].algorithm, contenders[i].plan, point);
      row.implementation = contenders[i].call->implementation();
      if (samples[i].wrong) row.wrong = static_cast<std::uint64_t>(*samples[i].wrong);
      row.bound_us = bound_us;
      if (!samples[i].microseconds.empty())
        set_time(row, timing(samples[i].microseconds), to_text(collective()));
      add_expected(row);
      // A contender that was wrong has no time, and its row would be no result.
      if (row.time_us.samples.empty()) {
        right_ = false;
        if (world_.rank() == 0) session.add_note(wrong_note(row));
        continue;
      }
      timed.push_back(std::move(row));
    }
    session.keep(world_, timed, kept_, measured_);
    kept_ += timed.size();
  }

  /// What good implementations take on such hosts, where somebody has published what they reach.
  void add_expected(CollectiveRow& row) const {
    if (world_.rank() != 0 || row.busbw_GBps <= 0 || on_gpu()) return;
    try {
      const auto interval = expected_interval(cluster_, collective(), row.algorithm, {row.size_bytes});
      if (interval)
        set_expected(row, interval->low.gigabytes_per_second(), interval->high.gigabytes_per_second());
    } catch (const Error&) {  // links of unknown speed
    }
  }

  /// A row without its times.
  CollectiveRow described(const std::string& name, const std::optional<Plan>& plan, Point point) const {
    CollectiveRow row;
    row.algorithm = name;
    if (plan) {
      row.dims = dims_text(plan->dims);
      row.patterns = patterns_text(*plan);
      row.lanes = plan->lanes;
      row.chunk_bytes = plan->chunk.value;
      if (!plan->orders.empty()) row.orders = orders_text(plan->orders);
    }
    row.ranks = world_.size();
    row.nodes = world_.nodes();
    row.ranks_per_node = world_.ranks_per_node();
    row.count = static_cast<std::uint64_t>(point.count / blocks());
    row.size_bytes = bytes(point.count);
    row.dtype = to_text(kind_);
    row.op = reduces(collective()) ? to_text(op_) : "none";
    row.in_place = point.in_place;
    row.timing = timing_;
    row.source = source_;
    for (std::size_t i = 0; i < maker_.names().size(); ++i) {
      const std::string& same = same_as_.at(point.count)[i];
      if (maker_.names()[i] == name && !same.empty()) row.same_as = same;
    }
    return row;
  }

  /// Which algorithms did the same as others, and at what sizes.
  std::vector<std::string> same_notes() const {
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> names;
    std::map<std::pair<std::string, std::string>, std::set<Count>> same;  // an algorithm, and that before it
    for (const auto& [count, firsts] : same_as_) {
      for (std::size_t i = 0; i < firsts.size(); ++i)
        if (!firsts[i].empty()) same[{maker_.names()[i], firsts[i]}].insert(count);
    }
    for (const auto& [pair, counts] : same) {
      const auto& [name, first] = pair;
      const Bytes least{bytes(*counts.begin())};
      const Bytes most{bytes(*counts.rbegin())};
      std::string sizes = fmt::format("at {} of {} sizes", counts.size(), counts_.size());
      if (counts.size() == counts_.size())
        sizes = "at all sizes";
      else if (counts.size() == 1)
        sizes = "at " + to_text(least);
      else if (between(*counts.begin(), *counts.rbegin()) == counts.size())
        sizes = fmt::format("at {} to {}", to_text(least), to_text(most));
      names[{first, sizes}].push_back(name);
    }
    std::vector<std::string> notes;
    for (const auto& [what, of] : names) {
      notes.push_back(fmt::format("{} did the same as {}, step by step, {}.", fmt::join(of, " and "),
                                  what.first, what.second));
    }
    return notes;
  }
  /// How many of the sizes are from one to another.
  std::size_t between(Count first, Count last) const {
    return static_cast<std::size_t>(std::count_if(
        counts_.begin(), counts_.end(), [&](Count count) { return count >= first && count <= last; }));
  }

  /// What a result must say that is known only in the end.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes = maker_.gpu_notes();
    if (const int graphs = options_.timing.graphs; graphs > 0)
      notes.push_back(fmt::format("The calls of a block were one CUDA graph, launched {} back to back.",
                                  counted(graphs, "time")));
    if (const auto note = maker_.note()) notes.push_back(*note);
    for (std::string& note : bounds_.notes()) notes.push_back(std::move(note));
    for (std::string& note : same_notes()) notes.push_back(std::move(note));
    return notes;
  }

  void finish(Session& session) {
    const auto& rows = std::get<std::vector<CollectiveRow>>(session.result().rows);
    const bool has_mpi = std::ranges::find(rows, kMpiAlgorithm, &CollectiveRow::algorithm) != rows.end();
    if (maker_.names().size() > 1 && has_mpi && !is_of_software_gpu(session.result()))
      session.remark(fmt::format("\n{}", shown(comparison_table(rows, std::string(kMpiAlgorithm)))));
    for (const std::string& note : notes()) session.add_note(note);
    for (const std::string& note : session.result().notes) session.remark(fmt::format("\n{}\n", note));
    for (const std::string& sentence : stragglers_.sentences(world_)) {
      warn(sentence);
      session.add_note(sentence + ".");
    }
    session.finish([&](const ResultFile& result) { return write_output(options_.output, result); });
  }

  const CollectiveOptions& options_;
  const MeasuringRun& run_;
  World& world_;
  ElementKind kind_;
  ReduceOp op_;
  TimingMethod timing_;
  Payload payload_;
  std::vector<Count> counts_;
  std::string lowered_;  // why counts_ have become fewer; empty: they have not
  std::optional<JobHosts> gpus_;
  ContenderMaker maker_;
  Source source_ = Source::measured;  // on rank 0, as the next
  Cluster cluster_;
  Bounds bounds_;
  std::uint64_t measured_ = 0;  // with those that were wrong
  std::size_t kept_ = 0;        // rows
  bool right_ = true;
  std::map<Count, std::vector<std::string>> same_as_;  // by count, of each of the maker's names
  Stragglers stragglers_;
};

struct Described {
  Collective collective;
  const char* summary;
  const char* example;
};

constexpr std::array kCommands{
    Described{
        Collective::allreduce, "Measure allreduces side by side, verified",
        "mpirun -np 4 polyring allreduce --dims 2x2 -b 1K -e 16M --algorithm multi-ring,mpi -J out.json\n"
        "  mpirun -np 8 polyring allreduce --device cuda --algorithm multi-ring,nccl,mpi"},
    Described{
        Collective::reduce_scatter, "Measure reduce-scatters side by side, verified",
        "mpirun -np 4 polyring reduce-scatter -b 1K -e 16M --algorithm multi-ring,halving-doubling,mpi"},
    Described{Collective::allgather, "Measure allgathers side by side, verified",
              "mpirun -np 4 polyring allgather -b 1K -e 16M --algorithm multi-ring,direct,mpi"},
    Described{Collective::alltoall, "Measure all-to-alls side by side, verified",
              "mpirun -np 4 polyring alltoall -b 1K -e 16M --algorithm direct,pairwise,mpi"}};

void add_collective(CommandLine& line, const Described& described) {
  auto options = std::make_shared<CollectiveOptions>();
  options->collective = described.collective;
  const bool allreduce = described.collective == Collective::allreduce;
  const auto action = [options, &line] {
    options->contenders.check_build();
    options->timing.resolve(options->contenders.transport.gpu.on_gpu());
    if (options->timing.graphs > 0) options->contenders.check_graphs();
    const std::string own_host =
        options->contenders.transport.gpu.probe(parse_timeout(options->measuring.timeout));
    return run_measuring(line.text(), options->measuring, own_host,
                         [&](const MeasuringRun& run) { return CollectiveRun(*options, run).run(); });
  };
  const Subcommand command =
      line.add_subcommand(to_text(described.collective), described.summary, described.example, action, true);
  options->contenders.add_to(command, described.collective);
  options->contenders.transport.gpu.add_to(command);
  options->payload.add_to(command, reduces(described.collective) ? "sum" : "");
  options->sizes.add_to(command);
  if (allreduce) {
    add_model_option(command, options->model, "The sizes of a model's gradients instead")
        .excludes({"--minbytes", "--maxbytes", "--stepfactor", "--stepbytes"});
  }
  command.add_option("-n,--iters", options->iterations, "Iterations; without, about half a second of each")
      .range(1, 1000000);
  command.add_option("-w,--warmup_iters", options->warmup, "Iterations before the timing")
      .show_default()
      .range(0, 1000000);
  options->timing.add_to(command);
  command.add_option("-c,--check", options->check, "1: compare every result with the right one; 0: do not")
      .show_default()
      .range(0, 1);
  command
      .add_option("--payload", options->values,
                  "whole: small whole numbers; special: NaNs, zeros of both signs, denormals, infinities and "
                  "the largest "
                  "numbers, at any two ranks")
      .show_default()
      .type_name("VALUES")
      .names({"payload", payload_values_names()});
  add_buffers_option(command, options->buffers);
  options->contenders.add_registration_to(command);
  options->measuring.add_to(command);
  add_output_option(command, options->output);
}

}  // namespace

void add_collectives(CommandLine& line) {
  for (const Described& described : kCommands) add_collective(line, described);
}

}  // namespace polyring
