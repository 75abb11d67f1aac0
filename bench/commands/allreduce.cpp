// polyring allreduce: measures allreduces side by side, verified.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "bench/bounds.hpp"
#include "bench/collective.hpp"
#include "bench/command.hpp"
#include "bench/emulation.hpp"
#include "bench/measure.hpp"
#include "bench/memory_pass.hpp"
#include "bench/options.hpp"
#include "bench/output.hpp"
#include "bench/progress.hpp"
#include "bench/record.hpp"
#include "bench/rivals.hpp"
#include "bench/run_cluster.hpp"
#include "bench/sizes.hpp"
#include "models/model.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

struct AllreduceOptions {
  RivalOptions rivals;
  PayloadOptions payload;
  SizeOptions sizes;
  std::string model;
  int iterations = 0;
  int warmup = 5;
  int check = 1;
  std::string values{to_text(PayloadValues::whole)};
  std::string buffers = "library";
  std::string timeout = "120";
  std::string output;
};

/// Numbers of elements, ascending.
std::vector<Count> counts_of(const AllreduceOptions& options, int element_size) {
  if (options.model.empty()) return options.sizes.counts(element_size);
  std::set<Count> counts;
  for (const Tensor& tensor : make_model(options.model).gradients) counts.insert(tensor.elements());
  return {counts.begin(), counts.end()};
}

class AllreduceRun {
 public:
  AllreduceRun(const AllreduceOptions& options, const std::string& command, MpiWorld& world,
               Watchdog& watchdog)
      : options_(options),
        command_(command),
        world_(world),
        watchdog_(watchdog),
        kind_(options.payload.kind()),
        op_(options.payload.op()),
        payload_(kind_, op_, world.size(), parse_payload_values(options.values)),
        counts_(counts_of(options, size_of(kind_))),
        timeout_(parse_timeout(options.timeout)),
        maker_(options.rivals, world, timeout_),
        progress_(world.rank() == 0) {}

  ExitCode run() {
    check();
    measure_all();
    progress_.clear();
    bool right = true;
    for (const AllreduceRow& row : rows_) right = right && row.wrong.value_or(0) == 0;
    on_root(world_, [this] { finish(); });
    return right ? ExitCode::ok : ExitCode::wrong_result;
  }

 private:
  /// All that can be wrong with the options, before anything is measured.
  void check() {
    maker_.check(kind_, counts_.back());
    Seconds head_start;
    on_root(world_, [&] {
      if (!options_.output.empty()) check_writable(options_.output);
      source_ = source_here();
      head_start = emulated_head_start();
    });
    cluster_ = host_memory_cluster(world_);
    bounds_ = Bounds(cluster_, head_start);
    const std::string ignored = options_.rivals.plan.ignored();
    if (world_.rank() == 0 && !ignored.empty()) warn(ignored);
  }

  void measure_all() {
    world_.set_timeout(timeout_);
    const WorldTransport wires = open_transport(world_, options_.rivals.transport);
    Transport* const transport = wires.transport.get();
    const Bytes largest{static_cast<std::uint64_t>(counts_.back() * size_of(kind_))};
    // A vendor's caller has memory from anywhere; where ours comes from is the option's affair.
    const Memory input = transport->allocate(largest);
    const Memory output = transport->allocate(largest);
    const Memory other_input = transport->scratch(largest);
    const Memory other_output = transport->scratch(largest);
    const Buffers library{input.get(), output.get()};
    const Buffers anywhere{other_input.get(), other_output.get()};
    for (const Count count : counts_) {
      std::vector<Rival> rivals = maker_.make(wires, kind_, op_, count);
      for (Rival& rival : rivals)
        rival.buffers = rival.plan && options_.buffers == "library" ? library : anywhere;
      const std::size_t named = rivals.size();
      const bool one_host = world_.nodes() == 1 && world_.size() > 1;
      if (one_host && Bytes{static_cast<std::uint64_t>(count * size_of(kind_))} >= kLeastMemoryBound) {
        for (Rival& pass : make_memory_passes(kind_, count, library)) rivals.push_back(std::move(pass));
      }
      for (const bool in_place : {false, true}) {
        const Bytes size{static_cast<std::uint64_t>(count * size_of(kind_))};
        progress_.show(fmt::format("{} {}", to_text(size), in_place ? "in place" : "out of place"));
        const MeasureOptions how{options_.iterations, options_.warmup, options_.check != 0};
        const auto samples =
            measure(rivals, world_, *transport, payload_, count, kind_, in_place, how, watchdog_);
        const auto of_rivals = std::span(samples).first(named);
        const auto bound_us = bounds_.bound_us(size, std::span(samples).subspan(named), of_rivals);
        for (const Samples& of_rival : samples) stragglers_.add(of_rival.stragglers);
        for (std::size_t i = 0; i < named; ++i) add_row(rivals[i], samples[i], count, in_place, bound_us);
      }
    }
  }

  void add_row(const Rival& rival, const Samples& samples, Count count, bool in_place,
               std::optional<double> bound_us) {
    AllreduceRow row;
    row.algorithm = rival.algorithm;
    row.implementation = rival.allreduce->implementation();
    if (rival.plan) {
      row.dims = dims_text(rival.plan->dims);
      row.patterns = patterns_text(*rival.plan);
      row.lanes = rival.plan->lanes;
      row.chunk_bytes = rival.plan->chunk.value;
      if (!rival.plan->orders.empty()) row.orders = orders_text(rival.plan->orders);
    }
    row.ranks = world_.size();
    row.nodes = world_.nodes();
    row.ranks_per_node = world_.ranks_per_node();
    row.count = static_cast<std::uint64_t>(count);
    row.size_bytes = row.count * static_cast<std::uint64_t>(size_of(kind_));
    row.dtype = to_text(kind_);
    row.op = to_text(op_);
    row.in_place = in_place;
    if (samples.wrong) row.wrong = static_cast<std::uint64_t>(*samples.wrong);
    row.source = source_;
    row.bound_us = bound_us;
    if (!samples.microseconds.empty()) set_time(row, timing(samples.microseconds));
    rows_.push_back(std::move(row));
  }

  /// A rival that was wrong has no time, and its row would be no result.
  std::vector<AllreduceRow> timed() const {
    std::vector<AllreduceRow> timed = rows_;
    std::erase_if(timed, [](const AllreduceRow& row) { return row.time_us.samples.empty(); });
    return timed;
  }

  void finish() {
    ResultFile result = describe_run(command_, &cluster_, &world_);
    if (const auto note = maker_.note()) result.notes.push_back(*note);
    if (world_.size() == 1)
      result.notes.push_back("One rank: there is nothing to reduce across, only copies are timed.");
    if (parse_payload_values(options_.values) == PayloadValues::special)
      result.notes.push_back("The payload is of special values, with which processors may take longer.");
    for (std::string& note : bounds_.notes()) result.notes.push_back(std::move(note));
    for (const AllreduceRow& row : rows_) {
      if (row.wrong.value_or(0) == 0) continue;
      result.notes.push_back(fmt::format("{} of {} bytes{} gave {} wrong elements and was not timed.",
                                         row.algorithm, row.size_bytes, row.in_place ? " in place" : "",
                                         *row.wrong));
    }
    const std::vector<AllreduceRow> rows = timed();
    print_out("{} rank{} on {} host{}, {}\n\n{}", world_.size(), world_.size() == 1 ? "" : "s",
              world_.nodes(), world_.nodes() == 1 ? "" : "s", MpiWorld::library(),
              allreduce_table(rows).text());
    const auto has_mpi = [](const AllreduceRow& row) { return row.algorithm == kMpiAlgorithm; };
    if (maker_.names().size() > 1 && std::any_of(rows.begin(), rows.end(), has_mpi)) {
      print_out("\n{}", comparison_table(rows, std::string(kMpiAlgorithm)).text());
    }
    for (const std::string& note : result.notes) print_out("\n{}\n", note);
    for (const std::string& sentence : stragglers_.sentences(world_)) {
      warn(sentence);
      result.notes.push_back(sentence + ".");
    }
    result.rows = rows;
    save(options_.output, result);
  }

  const AllreduceOptions& options_;
  const std::string& command_;
  MpiWorld& world_;
  Watchdog& watchdog_;
  ElementKind kind_;
  ReduceOp op_;
  Payload payload_;
  std::vector<Count> counts_;
  Seconds timeout_;
  RivalMaker maker_;
  Progress progress_;
  Source source_ = Source::measured;  // on rank 0, as the next
  Cluster cluster_;
  Bounds bounds_;  // of rank 0 alone with the topology's
  std::vector<AllreduceRow> rows_;
  Stragglers stragglers_;
};

}  // namespace

void add_allreduce(CommandLine& line) {
  auto options = std::make_shared<AllreduceOptions>();
  const auto action = [options, &line] {
    options->rivals.check_build();
    return run_collectively(parse_timeout(options->timeout), [&](MpiWorld& world, Watchdog& watchdog) {
      return AllreduceRun(*options, line.text(), world, watchdog).run();
    });
  };
  const Subcommand command = line.add_subcommand(
      "allreduce", "Measure allreduces side by side, verified",
      "mpirun -np 4 polyring allreduce --dims 2x2 -b 1K -e 16M --algorithm multi-ring,mpi -J out.json",
      action, true);
  options->rivals.add_to(command);
  options->payload.add_to(command, "sum");
  options->sizes.add_to(command);
  command.add_option("--model", options->model, "The sizes of a model's gradients instead: " + model_names())
      .type_name("NAME")
      .excludes({"--minbytes", "--maxbytes", "--stepfactor", "--stepbytes"});
  command.add_option("-n,--iters", options->iterations, "Iterations; without, about half a second of each")
      .range(1, 1000000);
  command.add_option("-w,--warmup_iters", options->warmup, "Iterations before the timing")
      .show_default()
      .range(0, 1000000);
  command.add_option("-c,--check", options->check, "1: compare every result with the right one; 0: do not")
      .show_default()
      .range(0, 1);
  command
      .add_option("--payload", options->values,
                  "whole: small whole numbers; special: NaNs, zeros of both signs, denormals, infinities and "
                  "the largest "
                  "numbers, at any two ranks")
      .show_default()
      .type_name("VALUES");
  add_buffers_option(command, options->buffers);
  command.add_option("-T,--timeout", options->timeout, "Give up when nothing happens for so long")
      .show_default();
  command.add_option("-J,--output_file", options->output, "Write the result here, as JSON").type_name("FILE");
}

}  // namespace polyring
