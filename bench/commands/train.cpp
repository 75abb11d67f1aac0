// polyring train: measures synthetic training steps, whose allreduces are real.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/collective.hpp"
#include "bench/command.hpp"
#include "bench/compute.hpp"
#include "bench/emulation.hpp"
#include "bench/options.hpp"
#include "bench/output.hpp"
#include "bench/progress.hpp"
#include "bench/record.hpp"
#include "bench/rivals.hpp"
#include "bench/run_cluster.hpp"
#include "bench/timeline.hpp"
#include "bench/training.hpp"
#include "collectives/payload.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

struct TrainOptions {
  RivalOptions rivals;
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
  TrainRun(const TrainOptions& options, const std::string& command, MpiWorld& world, Watchdog& watchdog)
      : options_(options),
        command_(command),
        world_(world),
        watchdog_(watchdog),
        kind_(options.payload.kind()),
        op_(options.payload.op()),
        model_(make_model(options.compute.model)),
        compute_(options.compute.resolve(model_, "")),
        policy_(parse_bucket_policy(options.bucket)),
        buckets_(make_buckets(model_, policy_, size_of(kind_))),
        timeout_(parse_timeout(options.timeout)),
        maker_(options.rivals, world, timeout_),
        progress_(world.rank() == 0) {}

  ExitCode run() {
    for (const Bucket& bucket : buckets_) maker_.check(kind_, bucket.elements);
    on_root(world_, [&] {
      if (!options_.output.empty()) check_writable(options_.output);
    });
    machine_ = host_memory_cluster(world_);
    progress_.show(fmt::format("{} steps of {}", options_.iterations, model_.name));
    world_.set_timeout(timeout_);
    const WorldTransport wires = open_transport(world_, options_.rivals.transport);
    Transport* const transport = wires.transport.get();
    const Memory gradients =
        transport->allocate({static_cast<std::uint64_t>(model_.total_elements() * size_of(kind_))});

    // The first trainer is a rank alone.
    std::vector<Trainer> trainers(1 + maker_.names().size());
    std::vector<std::optional<Plan>> plans;
    for (const Bucket& bucket : buckets_) {
      auto rivals = maker_.make(wires, kind_, op_, bucket.elements);
      plans.clear();
      for (std::size_t i = 0; i < rivals.size(); ++i) {
        trainers[i + 1].allreduces.push_back(std::move(rivals[i].allreduce));
        plans.push_back(rivals[i].plan);
      }
    }
    const std::vector<Count> wrong = verify(trainers, *transport, gradients.get());
    const bool right = std::all_of(wrong.begin(), wrong.end(), [](Count count) { return count == 0; });
    if (!right) {
      report_wrong(wrong);
      return ExitCode::wrong_result;
    }
    // Zeros stay zeros under every operation: nothing overflows, however long it runs.
    const std::vector<std::byte> zeros(static_cast<std::size_t>(model_.total_elements() * size_of(kind_)));
    transport->upload(gradients.get(), zeros);
    const auto measured = measure_steps(trainers, world_, compute_.step, buckets_, !options_.no_overlap,
                                        gradients.get(), size_of(kind_), options_.iterations, watchdog_);
    progress_.clear();
    on_root(world_, [&] { finish(measured, plans); });
    return ExitCode::ok;
  }

 private:
  /// Wrong elements of each trainer but the first, over all buckets and ranks.
  std::vector<Count> verify(std::vector<Trainer>& trainers, Transport& transport,
                            std::byte* gradients) const {
    const Payload payload(kind_, op_, world_.size());
    std::vector<Count> wrong;
    for (std::size_t i = 1; i < trainers.size(); ++i) {
      Count of_trainer = 0;
      for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
        const Count count = buckets_[bucket].elements;
        std::vector<std::byte> host(static_cast<std::size_t>(count * size_of(kind_)));
        payload.fill(world_.rank(), host.data(), count);
        transport.upload(gradients, host);
        Allreduce& allreduce = *trainers[i].allreduces[bucket];
        if (!allreduce.keeps_time_limit()) watchdog_.watch("the check of " + allreduce.algorithm());
        allreduce.run(gradients, gradients);
        watchdog_.rest();
        transport.download(host, gradients);
        of_trainer += payload.wrong(host.data(), count);
      }
      wrong.push_back(world_.sum(of_trainer));
    }
    return wrong;
  }

  void report_wrong(const std::vector<Count>& wrong) {
    progress_.clear();
    if (world_.rank() != 0) return;
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      if (wrong[i] == 0) continue;
      warn("{} gave {} wrong elements; nothing was timed", maker_.names()[i], wrong[i]);
    }
  }

  void finish(const std::vector<TrainingSteps>& measured,
              const std::vector<std::optional<Plan>>& plans) const {
    ResultFile result = describe_run(command_, &machine_, &world_);
    const Timing alone = timing(measured.front().total_ms);
    std::vector<TrainRow> rows;
    for (std::size_t i = 0; i < plans.size(); ++i) rows.push_back(row(i, measured[i + 1], plans[i], alone));
    result.notes.push_back(
        fmt::format("The computation is simulated by sleeping; its time, {:.1f} ms a step, is {}.",
                    compute_.step.total().value * 1e3, compute_.source));
    result.notes.push_back(fmt::format(
        "A rank's step alone took {:.2f} ms (median, measured); efficiency is against it.", alone.median));
    result.inputs = {{"computation per step", to_text(compute_.step.total()), compute_.source}};
    if (const auto note = maker_.note()) result.notes.push_back(*note);
    if (world_.size() == 1) result.notes.push_back("One rank: there is nothing to reduce across.");
    print_out("{}\n", train_table(rows).text());
    for (const std::string& note : result.notes) print_out("{}\n", note);
    result.rows = std::move(rows);
    save(options_.output, result);
  }

  TrainRow row(std::size_t algorithm, const TrainingSteps& measured, const std::optional<Plan>& plan,
               const Timing& alone) const {
    TrainRow row;
    row.machine = machine_.host(0).name;
    row.model = model_.name;
    row.algorithm = maker_.names()[algorithm];
    if (plan) {
      row.dims = dims_text(plan->dims);
      row.lanes = plan->lanes;
      row.chunk_bytes = plan->chunk.value;
    }
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
  const std::string& command_;
  MpiWorld& world_;
  Watchdog& watchdog_;
  ElementKind kind_;
  ReduceOp op_;
  Model model_;
  Compute compute_;
  BucketPolicy policy_;
  std::vector<Bucket> buckets_;
  Seconds timeout_;
  RivalMaker maker_;
  Progress progress_;
  Cluster machine_;  // on rank 0
};

}  // namespace

void add_train(CommandLine& line) {
  auto options = std::make_shared<TrainOptions>();
  const auto action = [options, &line] {
    options->rivals.check_build();
    return run_collectively(parse_timeout(options->timeout), [&](MpiWorld& world, Watchdog& watchdog) {
      return TrainRun(*options, line.text(), world, watchdog).run();
    });
  };
  const Subcommand command =
      line.add_subcommand("train", "Measure synthetic training steps with real allreduces",
                          "mpirun -np 4 polyring train --model resnet50 --batch 32 --gpu P100", action, true);
  options->compute.add_to(command);
  options->rivals.add_to(command);
  options->payload.add_to(command, "avg");
  command.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE").show_default();
  command.add_flag("--no-overlap", options->no_overlap,
                   "Begin to communicate only when the backward pass is over");
  command.add_option("-n,--iters", options->iterations, "Steps of each algorithm")
      .show_default()
      .range(1, 1000000);
  command.add_option("-T,--timeout", options->timeout, "Give up when nothing happens for so long")
      .show_default();
  command.add_option("-J,--output_file", options->output, "Write the result here, as JSON").type_name("FILE");
}

}  // namespace polyring
