// polyring train: measures synthetic training steps, whose allreduces are real.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/commands/command.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/measure/host_piece.hpp"
#include "bench/measure/payload.hpp"
#include "bench/measure/timeline.hpp"
#include "bench/measure/training.hpp"
#include "bench/predict/compute.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/record.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/memory_check.hpp"
#include "bench/session/session.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

struct TrainOptions {
  ContenderOptions contenders;
  PayloadOptions payload;
  ComputeOptions compute;
  std::string bucket = "fused:64MiB";
  bool no_overlap = false;
  int iterations = 10;
  std::string timeout = "120";
  std::string output;
};

class TrainRun {
 public:
  TrainRun(const TrainOptions& options, const MeasuringRun& run)
      : options_(options),
        run_(run),
        world_(run.world),
        kind_(options.payload.kind()),
        op_(options.payload.op()),
        model_(make_model(options.compute.model)),
        compute_(options.compute.resolve(model_, "")),
        policy_(parse_bucket_policy(options.bucket)),
        buckets_(make_buckets(model_, policy_, size_of(kind_))),
        maker_(options.contenders, world_, run.timeout, {.kind = kind_, .op = op_}) {}

  ExitCode run() {
    for (const Bucket& bucket : buckets_) maker_.check(bucket.elements);
    on_root(world_, [&] {
      if (!options_.output.empty()) check_writable(options_.output);
    });
    machine_ = host_memory_cluster(world_);
    const std::unique_ptr<Communicator> opened = run_.connect(options_.contenders.transport);
    const Communicator& communicator = *opened;
    Transport& transport = communicator.transport();
    check_memory(communicator);
    const Memory gradients =
        transport.allocate({static_cast<std::uint64_t>(model_.total_elements() * size_of(kind_))});

    // The first trainer is a rank alone.
    std::vector<Trainer> trainers(1 + maker_.names().size());
    std::vector<PlansBySize> plans(maker_.names().size());
    for (const Bucket& bucket : buckets_) {
      auto contenders = maker_.make(communicator, bucket.elements);
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        trainers[i + 1].allreduces.push_back(std::move(contenders[i].call));
        if (!contenders[i].plan) continue;
        OfSize& of_size = plans[i][bucket.elements];
        of_size.plan = *contenders[i].plan;
        ++of_size.buckets;
      }
    }
    const std::vector<Count> wrong = verify(trainers, transport, gradients.get());
    const bool right = std::all_of(wrong.begin(), wrong.end(), [](Count count) { return count == 0; });
    if (!right) {
      report_wrong(wrong);
      return ExitCode::wrong_result;
    }
    // Zeros stay zeros under every operation: nothing overflows, however long it runs.
    {
      const HostPiece zeros(transport, kind_, model_.total_elements());
      std::fill_n(zeros.data(), zeros.bytes(), std::byte{});
      zeros.write(gradients.get(), model_.total_elements());
    }
    Session session(world_);
    on_root(world_, [&] { open(session); });
    const StepObserver observer{
        [&] { session.step("steps of " + model_.name); },
        [&](const std::vector<TrainingSteps>& measured) { keep(session, measured, plans); }};
    const TrainingWork work{compute_.step, buckets_, kind_, !options_.no_overlap, gradients.get()};
    const auto measured =
        measure_steps(trainers, run_.job(communicator), work, options_.iterations, observer);
    on_root(world_, [&] { finish(session, measured); });
    return ExitCode::ok;
  }

 private:
  struct OfSize {
    Plan plan;
    std::uint64_t buckets = 0;
  };
  /// By a bucket's elements; none for a vendor's call.
  using PlansBySize = std::map<Count, OfSize>;

  /// All buckets' allreduces are there at once. Collective.
  void check_memory(const Communicator& communicator) {
    MemoryCount memory(communicator.transport());
    const Memory gradients =
        memory.allocate({static_cast<std::uint64_t>(model_.total_elements() * size_of(kind_))});
    const HostPiece piece(memory, kind_, model_.total_elements());
    const HostPiece result(memory, kind_, model_.total_elements());
    std::vector<std::unique_ptr<CollectiveCall>> planned;
    Count largest = 0;
    for (const Bucket& bucket : buckets_) {
      largest = std::max(largest, bucket.elements);
      for (auto& allreduce : maker_.make_planned_over(memory, communicator, bucket.elements))
        planned.push_back(std::move(allreduce));
    }
    for (const auto& allreduce : planned) allreduce->run(gradients.get(), gradients.get());
    const Memory of_vendors = memory.scratch(
        maker_.vendors_memory(bytes_of(largest, kind_), bytes_of(model_.total_elements(), kind_)));
    const auto shortage = find_shortage(world_, memory.most(), memory_room());
    if (!shortage) return;
    usage_error(
        "too little memory: {}; choose a smaller model than {}, smaller buckets, or fewer ranks a host",
        to_text(*shortage), model_.name);
  }

  /// Wrong elements of each trainer but the first, over all buckets and ranks.
  std::vector<Count> verify(std::vector<Trainer>& trainers, Transport& transport,
                            std::byte* gradients) const {
    const Payload payload(kind_, op_, world_.size());
    const Count largest = model_.total_elements();
    const HostPiece piece(transport, kind_, largest);
    const HostPiece result(transport, kind_, largest);
    payload.fill(world_.rank(), piece.data(), piece.elements());
    std::vector<Count> wrong;
    for (std::size_t i = 1; i < trainers.size(); ++i) {
      Count of_trainer = 0;
      for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        const Count count = buckets_[bucket].elements;
        piece.write(gradients, count);
        CollectiveCall& allreduce = *trainers[i].allreduces[bucket];
        if (!allreduce.keeps_time_limit()) run_.watchdog.watch("the check of " + allreduce.algorithm());
        allreduce.run(gradients, gradients);
        run_.watchdog.rest();
        of_trainer += result.wrong(payload, gradients, count);
      }
      wrong.push_back(world_.sum(of_trainer));
    }
    return wrong;
  }

  void report_wrong(const std::vector<Count>& wrong) {
    if (world_.rank() != 0) return;
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      if (wrong[i] == 0) continue;
      warn("{} gave {} wrong elements; nothing was timed", maker_.names()[i], wrong[i]);
    }
  }

  /// On rank 0.
  void open(Session& session) const {
    Session::Outline outline;
    outline.output = options_.output;
    outline.header = run_.header(&machine_);
    outline.header.notes.push_back(
        fmt::format("The computation is simulated by sleeping; its time, {:.1f} ms a step, is {}.",
                    compute_.step.total().value * 1e3, compute_.source));
    if (const auto note = maker_.note()) outline.header.notes.push_back(*note);
    if (world_.size() == 1) outline.header.notes.push_back("One rank: there is nothing to reduce across.");
    outline.header.inputs = {{"computation per step", to_text(compute_.step.total()), compute_.source}};
    outline.header.rows = std::vector<TrainRow>{};
    outline.planned = maker_.names().size() * static_cast<std::uint64_t>(options_.iterations);
    outline.table = [](const Rows& rows) { return train_table(std::get<std::vector<TrainRow>>(rows)); };
    outline.weights.assign(static_cast<std::size_t>(options_.iterations) + 1, 1);
    session.open(std::move(outline));
  }

  /// All algorithms take turns, so that all rows get better as the run goes on.
  void keep(Session& session, const std::vector<TrainingSteps>& measured,
            const std::vector<PlansBySize>& plans) const {
    std::vector<TrainRow> rows;  // on rank 0, which alone knows the machine
    const Timing alone = timing(measured.front().total_ms);
    for (std::size_t i = 0; i < plans.size() && world_.rank() == 0; ++i)
      rows.push_back(row(i, measured[i + 1], plans[i], alone));
    session.keep(rows, 0, plans.size() * alone.samples.size());
  }

  void finish(Session& session, const std::vector<TrainingSteps>& measured) const {
    session.print_rows();
    session.add_note(
        fmt::format("A rank's step alone took {:.2f} ms (median, measured); efficiency is against it.",
                    timing(measured.front().total_ms).median));
    session.print("\n");
    const Table plans = plans_table(std::get<std::vector<TrainRow>>(session.result().rows));
    if (!plans.empty()) session.print("The plan of each size of bucket:\n\n" + plans.text() + "\n");
    for (const std::string& note : session.result().notes) session.print(note + "\n");
    session.finish([&](const ResultFile& result) { return write_result(options_.output, result).string(); });
  }

  void set_plans(TrainRow& row, const PlansBySize& plans) const {
    const Plan& largest = plans.rbegin()->second.plan;
    row.dims = dims_text(largest.dims);
    row.patterns = if_any(patterns_text(largest));
    row.lanes = largest.lanes;
    row.chunk_bytes = largest.chunk.value;
    if (plans.size() == 1 && largest.orders.empty()) return;
    std::vector<BucketPlan>& all = row.plans.emplace();
    for (const auto& [elements, of_size] : plans)
      all.push_back({bytes_of(elements, kind_).value, of_size.buckets, to_text(of_size.plan)});
  }

  TrainRow row(std::size_t algorithm, const TrainingSteps& measured, const PlansBySize& plans,
               const Timing& alone) const {
    TrainRow row;
    row.machine = machine_.host(0).name;
    row.model = model_.name;
    row.algorithm = maker_.names()[algorithm];
    if (!plans.empty()) set_plans(row, plans);
    row.gpus = world_.size();
    row.nodes = world_.nodes();
    row.batch = options_.compute.batch;
    row.bucket = to_text(policy_);
    row.overlap = !options_.no_overlap;
    row.iteration_ms = timing(measured.total_ms);
    row.images_per_second =
        static_cast<double>(world_.size()) * options_.compute.batch / (row.iteration_ms.median * 1e-3);
    row.efficiency = alone.median / row.iteration_ms.median;
    row.compute_ms = compute_.step.total().value * 1e3;
    row.exposed_comm_ms = std::max(0.0, row.iteration_ms.median - row.compute_ms);
    row.wrong = 0;
    row.timeline = timeline_of(median_step(measured));
    row.source = source_here();
    return row;
  }

  const TrainOptions& options_;
  const MeasuringRun& run_;
  MpiWorld& world_;
  ElementKind kind_;
  ReduceOp op_;
  Model model_;
  Compute compute_;
  BucketPolicy policy_;
  std::vector<Bucket> buckets_;
  ContenderMaker maker_;
  Cluster machine_;  // on rank 0
};

}  // namespace

void add_train(CommandLine& line) {
  auto options = std::make_shared<TrainOptions>();
  const auto action = [options, &line] {
    options->contenders.check_build();
    return run_measuring(line.text(), options->timeout,
                         [&](const MeasuringRun& run) { return TrainRun(*options, run).run(); });
  };
  const Subcommand command =
      line.add_subcommand("train", "Measure synthetic training steps with real allreduces",
                          "mpirun -np 4 polyring train --model resnet50 --batch 32 --gpu P100", action, true);
  options->compute.add_to(command);
  options->contenders.add_to(command);
  options->payload.add_to(command, "avg");
  command.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE").show_default();
  command.add_flag("--no-overlap", options->no_overlap,
                   "Begin to communicate only when the backward pass is over");
  command.add_option("-n,--iters", options->iterations, "Steps of each algorithm")
      .show_default()
      .range(1, 1000000);
  add_timeout_option(command, options->timeout);
  add_output_option(command, options->output);
}

}  // namespace polyring
