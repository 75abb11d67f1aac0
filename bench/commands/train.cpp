// polyring train: measures synthetic training steps, whose allreduces are real.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/measure/host_piece.hpp"
#include "bench/measure/payload.hpp"
#include "bench/measure/timeline.hpp"
#include "bench/measure/training.hpp"
#include "bench/predict/compute.hpp"
#include "bench/record/emulation.hpp"
#include "bench/record/result_file.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/memory_check.hpp"
#include "bench/session/session.hpp"
#include "reports/tables.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

struct TrainOptions {
  ContenderOptions contenders;
  PayloadOptions payload;
  ComputeOptions compute;
  std::string bucket = "fused:64MiB";
  bool no_overlap = false;
  std::string ranks;  // empty: all
  int iterations = 10;
  MeasuringOptions measuring;
  std::string output;
};

/// What is trained, on however many ranks.
struct Training {
  explicit Training(const TrainOptions& options)
      : kind(options.payload.kind()),
        op(options.payload.op()),
        model(make_model(options.compute.model)),
        compute(options.compute.resolve(model, "")),
        policy(parse_bucket_policy(options.bucket)),
        buckets(make_buckets(model, policy, size_of(kind))) {}

  Bytes gradients() const { return bytes_of(model.total_elements(), kind); }

  ElementKind kind;
  ReduceOp op;
  Model model;
  Compute compute;
  BucketPolicy policy;
  std::vector<Bucket> buckets;
};

/// The steps of one number of ranks.
class StepsRun {
 public:
  /// Collective over run.world. Throws as ContenderMaker and Communicator do, and a usage Error where there
  /// are too many elements or there is too little memory.
  StepsRun(const TrainOptions& options, const Training& training, const MeasuringRun& run)
      : options_(options),
        training_(training),
        run_(run),
        maker_(options.contenders, run.world, run.timeout, {.kind = training.kind, .op = training.op}) {
    for (const Bucket& bucket : training.buckets) maker_.check(bucket.elements);
    communicator_ = run_.connect(options.contenders.transport);
    check_memory();
  }

  int ranks() const { return run_.world.size(); }
  std::string ranks_text() const { return fmt::format("{} rank{}", ranks(), ranks() == 1 ? "" : "s"); }
  const MeasuringRun& run() const { return run_; }
  /// What nobody exceeds between two turns, while messages arrive in time.
  Seconds longest_turn() const {
    const Seconds step = training_.compute.step.total() +
                         static_cast<double>(training_.buckets.size()) * std::max(run_.timeout, kLeastLimit);
    return static_cast<double>(1 + algorithms()) * step;
  }
  std::size_t algorithms() const { return maker_.names().size(); }
  std::optional<std::string> note() const { return maker_.note(); }
  std::optional<std::string> left_out() const { return maker_.left_out(); }

  /// Rows as wide as those to come. Collective over these ranks.
  std::vector<TrainRow> expected() {
    constexpr double kWide_ms = 99'999;
    const auto largest = std::ranges::max_element(training_.buckets, {}, &Bucket::elements);
    std::vector<TrainRow> rows;
    for (const std::string& name : maker_.names()) {
      PlansBySize plans;
      if (const auto plan = maker_.plan(name, *communicator_, largest->elements))
        plans[largest->elements] = {*plan, 1};
      TrainRow& row = rows.emplace_back(described(name, plans));
      row.iteration_ms = exact_timing(kWide_ms);
      // As many as decide whether there is an interval.
      row.iteration_ms.samples.resize(static_cast<std::size_t>(std::min(options_.iterations, 10)), kWide_ms);
      row.images_per_second = row.compute_ms = row.exposed_comm_ms = kWide_ms;
      row.efficiency = 1;
    }
    return rows;
  }

  /// Rows on rank 0, nothing on the others, and how often each algorithm was timed. Collective.
  using SoFar = std::function<void(std::vector<TrainRow> rows, std::uint64_t turns)>;

  /// Collective over these ranks. A sentence for each algorithm whose result was wrong; then nothing is
  /// timed.
  std::vector<std::string> measure(const std::function<void()>& turn, const SoFar& so_far) {
    const Job job = run_.job(*communicator_);
    const Memory gradients = job.transport.allocate(training_.gradients());

    // The first trainer is a rank alone.
    std::vector<Trainer> trainers(1 + maker_.names().size());
    std::vector<PlansBySize> plans(maker_.names().size());
    for (const Bucket& bucket : training_.buckets) {
      auto contenders = maker_.make(*communicator_, bucket.elements);
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        trainers[i + 1].allreduces.push_back(std::move(contenders[i].call));
        if (!contenders[i].plan) continue;
        OfSize& of_size = plans[i][bucket.elements];
        of_size.plan = *contenders[i].plan;
        ++of_size.buckets;
      }
    }
    std::vector<std::string> wrong = verify(trainers, job.transport, gradients.get());
    if (!wrong.empty()) return wrong;
    // Zeros stay zeros under every operation: nothing overflows, however long it runs.
    {
      const HostPiece zeros(job.transport, training_.kind, training_.model.total_elements());
      std::fill_n(zeros.data(), zeros.bytes(), std::byte{});
      zeros.write(gradients.get(), training_.model.total_elements());
    }
    const TrainingWork work{training_.compute.step, training_.buckets, training_.kind, !options_.no_overlap,
                            gradients.get()};
    const auto keep = [&](const std::vector<TrainingSteps>& measured) {
      so_far(rows(measured, plans), measured.front().total_ms.size());
    };
    measure_steps(trainers, job, work, options_.iterations, {turn, keep});
    return {};
  }

 private:
  struct OfSize {
    Plan plan;
    std::uint64_t buckets = 0;
  };
  /// By a bucket's elements; none for a vendor's call.
  using PlansBySize = std::map<Count, OfSize>;

  /// All buckets' allreduces are there at once. Collective.
  void check_memory() {
    MemoryCount memory(communicator_->transport());
    const Count elements = training_.model.total_elements();
    const Memory gradients = memory.allocate(training_.gradients());
    const HostPiece piece(memory, training_.kind, elements);
    const HostPiece result(memory, training_.kind, elements);
    std::vector<std::unique_ptr<Executor>> planned;
    Count largest = 0;
    for (const Bucket& bucket : training_.buckets) {
      largest = std::max(largest, bucket.elements);
      for (auto& allreduce : maker_.make_planned_over(memory, *communicator_, bucket.elements))
        planned.push_back(std::move(allreduce));
    }
    for (const auto& allreduce : planned) allreduce->run(gradients.get(), gradients.get());
    const Memory of_vendors =
        memory.scratch(maker_.vendors_memory(bytes_of(largest, training_.kind), training_.gradients()));
    const auto shortage = find_shortage(run_.world, memory.most(), memory_room());
    if (!shortage) return;
    usage_error(
        "too little memory: {}; choose a smaller model than {}, smaller buckets, or fewer ranks a host",
        to_text(*shortage), training_.model.name);
  }

  /// A sentence for each algorithm that is wrong, over all buckets and ranks.
  std::vector<std::string> verify(std::vector<Trainer>& trainers, Transport& transport,
                                  std::byte* gradients) const {
    const Payload payload(training_.kind, training_.op, ranks());
    const Count largest = training_.model.total_elements();
    const HostPiece piece(transport, training_.kind, largest);
    const HostPiece result(transport, training_.kind, largest);
    payload.fill(run_.world.rank(), piece.data(), piece.elements());
    std::vector<std::string> wrong;
    for (std::size_t i = 1; i < trainers.size(); ++i) {
      Count of_trainer = 0;
      for (std::size_t bucket = 0; bucket < training_.buckets.size(); ++bucket) {
        const Count count = training_.buckets[bucket].elements;
        piece.write(gradients, count);
        CollectiveCall& allreduce = *trainers[i].allreduces[bucket];
        if (!allreduce.keeps_time_limit()) run_.watchdog.watch("the check of " + allreduce.algorithm());
        allreduce.run(gradients, gradients);
        run_.watchdog.rest();
        of_trainer += result.wrong(payload, gradients, count);
      }
      const Count of_all = run_.world.sum(of_trainer);
      if (of_all == 0) continue;
      wrong.push_back(fmt::format("{} gave {} wrong elements on {}, where nothing was timed",
                                  maker_.names()[i - 1], of_all, ranks_text()));
    }
    return wrong;
  }

  std::vector<TrainRow> rows(const std::vector<TrainingSteps>& measured,
                             const std::vector<PlansBySize>& plans) const {
    std::vector<TrainRow> rows;
    const Timing alone = timing(measured.front().total_ms);
    for (std::size_t i = 0; i < plans.size() && run_.world.rank() == 0; ++i) {
      TrainRow& row = rows.emplace_back(described(maker_.names()[i], plans[i]));
      row.iteration_ms = timing(measured[i + 1].total_ms);
      row.images_per_second =
          static_cast<double>(ranks()) * options_.compute.batch / (row.iteration_ms.median * 1e-3);
      row.efficiency = alone.median / row.iteration_ms.median;
      row.exposed_comm_ms = std::max(0.0, row.iteration_ms.median - row.compute_ms);
      row.timeline = timeline_of(median_step(measured[i + 1]));
    }
    return rows;
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
      all.push_back({bytes_of(elements, training_.kind).value, of_size.buckets, to_text(of_size.plan)});
  }

  /// A row without what is measured.
  TrainRow described(const std::string& name, const PlansBySize& plans) const {
    TrainRow row;
    row.model = training_.model.name;
    row.algorithm = name;
    if (!plans.empty()) set_plans(row, plans);
    row.gpus = ranks();
    row.nodes = run_.world.nodes();
    row.batch = options_.compute.batch;
    row.bucket = to_text(training_.policy);
    row.overlap = !options_.no_overlap;
    row.compute_ms = training_.compute.step.total().value * 1e3;
    row.wrong = 0;
    row.source = source_here();
    return row;
  }

  const TrainOptions& options_;
  const Training& training_;
  MeasuringRun run_;
  ContenderMaker maker_;
  std::unique_ptr<Communicator> communicator_;
};

/// The numbers of ranks to measure, ascending.
std::vector<int> counts_of(const TrainOptions& options, int ranks) {
  if (options.ranks.empty()) return {ranks};
  std::vector<int> counts = parse_counts(options.ranks, "--ranks");
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.back() > ranks) {
    usage_error("--ranks asks for steps on {} ranks, and this job has {}; start more, or ask for fewer",
                counts.back(), ranks);
  }
  return counts;
}

/// All numbers of ranks, one after the other: the first ranks of the job, while the others wait.
class TrainRun {
 public:
  TrainRun(const TrainOptions& options, const MeasuringRun& run)
      : options_(options),
        run_(run),
        world_(run.world),
        training_(options),
        counts_(counts_of(options, run.world.size())) {}

  ExitCode run() {
    on_root(world_, [&] { check_output(options_.output); });
    for (const int ranks : counts_) begin(ranks);
    Session session(world_);
    on_root(world_, [&] { open(session); });
    for (Part& part : parts_) {
      on_members(world_, part.steps != nullptr, part.longest_turn, [&](const std::function<void()>& goes_on) {
        measure(session, *part.steps, goes_on);
        part.note = part.steps->note();
        // The next number of ranks needs the memory.
        part.steps.reset();
        part.own.reset();
      });
    }
    right_ = world_.broadcast(static_cast<std::int64_t>(right_)) == 1;  // to those that waited, too
    const bool nothing = world_.broadcast(static_cast<std::int64_t>(kept_)) == 0;
    if (nothing && right_) return ExitCode::ok;
    run_.add_conditions(session, options_.contenders.plan.algorithms);
    on_root(world_, [&] { finish(session); });
    return right_ ? ExitCode::ok : ExitCode::wrong_result;
  }

 private:
  struct Part {
    std::unique_ptr<World> own;       // of the first ranks; null where it is the whole job
    std::unique_ptr<StepsRun> steps;  // null on the ranks that wait, and when all is measured
    Seconds longest_turn;
    std::optional<std::string> note;  // on rank 0, of its plans
  };

  /// All that can be wrong with the options, before anything is measured.
  void begin(int ranks) {
    // Rank 0 may choose plans, and read files, several times.
    const Seconds limit = 5 * std::max(run_.timeout, World::kSetUpTimeout);
    Part& part = parts_.emplace_back();
    on_members(world_, world_.rank() < ranks, limit, [&](const auto&) {
      if (ranks < world_.size()) {
        run_.watchdog.watch({fmt::format("a communicator of the first {} ranks", ranks),
                             std::max(run_.timeout, kLeastLimit)});
        std::vector<Rank> first(static_cast<std::size_t>(ranks));
        std::iota(first.begin(), first.end(), 0);
        part.own = world_.part(first, World::Others::rest);
        run_.watchdog.rest();
      }
      World& world = part.own ? *part.own : world_;
      part.steps = std::make_unique<StepsRun>(
          options_, training_, MeasuringRun{run_.command, run_.timeout, world, run_.watchdog, run_.load});
      std::vector<TrainRow> rows = part.steps->expected();
      if (ranks == counts_.back()) machine_ = host_memory_cluster(world);
      expected_.insert(expected_.end(), rows.begin(), rows.end());
      part.note = part.steps->note();
    });
    part.longest_turn.value = world_.max(part.steps ? part.steps->longest_turn().value : 0);
    if (ranks != counts_.back() || world_.rank() != 0) return;
    for (TrainRow& row : expected_) row.machine = machine_.host(0).name;
  }

  void measure(Session& session, StepsRun& steps, const std::function<void()>& goes_on) {
    const std::string what = fmt::format("steps of {} on {}", training_.model.name, steps.ranks_text());
    const auto turn = [&] {
      goes_on();
      session.step(what);
    };
    const auto keep = [&](std::vector<TrainRow> rows, std::uint64_t turns) {
      for (TrainRow& row : rows) row.machine = machine_.host(0).name;
      session.keep(steps.run().world, rows, kept_, measured_ + steps.algorithms() * turns);
    };
    const std::vector<std::string> wrong = steps.measure(turn, keep);
    if (!wrong.empty()) {
      right_ = false;
      for (const std::string& sentence : wrong) {
        if (world_.rank() != 0) continue;
        warn(sentence);
        session.add_note(fmt::format("{}: {}.", kWrongResults, sentence));
      }
      return;
    }
    kept_ += steps.algorithms();
    measured_ += steps.algorithms() * static_cast<std::uint64_t>(options_.iterations);
    if (world_.rank() == 0) session.print_rows();
  }

  /// On rank 0.
  void open(Session& session) const {
    Session::Outline outline;
    outline.output = options_.output;
    outline.header = parts_.back().steps->run().header(&machine_);
    outline.header.notes.push_back(
        fmt::format("The computation is simulated by sleeping; its time, {:.1f} ms a step, is {}.",
                    training_.compute.step.total().value * 1e3, training_.compute.source));
    if (counts_.back() == 1) outline.header.notes.push_back("One rank: there is nothing to reduce across.");
    if (counts_.front() < world_.size()) {
      outline.header.notes.push_back(fmt::format(
          "The job had {} ranks. While its first ones were measured, the others waited.", world_.size()));
    }
    for (const std::string& note : plan_notes()) outline.header.notes.push_back(note);
    if (const auto left_out = parts_.back().steps->left_out())
      outline.header.notes.push_back(*left_out + ".");
    outline.header.inputs = {
        {"computation per step", to_text(training_.compute.step.total()), training_.compute.source}};
    outline.header.rows = std::vector<TrainRow>{};
    outline.planned = expected_.size() * static_cast<std::uint64_t>(options_.iterations);
    outline.table = [this](const Rows& rows) {
      return train_table(std::get<std::vector<TrainRow>>(rows), expected_);
    };
    outline.expected = train_table(expected_, expected_);
    outline.weights.assign(counts_.size() * (static_cast<std::size_t>(options_.iterations) + 1), 1);
    session.open(std::move(outline));
  }

  void finish(Session& session) const {
    const auto& rows = std::get<std::vector<TrainRow>>(session.result().rows);
    for (const std::string& note : plan_notes()) {
      if (std::ranges::count(session.result().notes, note) == 0) session.add_note(note);
    }
    if (!rows.empty())
      session.add_note(fmt::format(
          "A rank's step alone took {} ms (median, measured); efficiency is against it.", alone_text(rows)));
    session.remark("\n");
    const Table plans = plans_table(rows);
    if (!plans.empty()) session.remark("The plan of each size of bucket:\n\n" + shown(plans) + "\n");
    for (const std::string& note : session.result().notes) session.remark(note + "\n");
    session.finish([&](const ResultFile& result) { return write_output(options_.output, result); });
    const bool planned = std::ranges::any_of(rows, [](const TrainRow& row) { return !row.dims.empty(); });
    if (counts_.size() > 1 && !options_.output.empty() && planned)
      session.remark(
          "For speedups, give this file to polyring scale --from-run, and links to --calibration.\n");
  }

  /// What the numbers of ranks have to say of their plans; once where all say the same.
  std::vector<std::string> plan_notes() const {
    std::vector<std::string> notes;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].note)
        notes.push_back(fmt::format("Of {}: {}", counted(counts_[i], "rank"), *parts_[i].note));
    }
    const bool same =
        std::ranges::all_of(parts_, [&](const Part& part) { return part.note == parts_[0].note; });
    if (same && parts_[0].note) return {*parts_[0].note};
    return notes;
  }

  /// Of all numbers of ranks.
  static std::string alone_text(const std::vector<TrainRow>& rows) {
    std::vector<double> alone_ms;
    for (const TrainRow& row : rows) alone_ms.push_back(row.efficiency * row.iteration_ms.median);
    const auto [least, most] = std::ranges::minmax(alone_ms);
    const std::string from = fmt::format("{:.2f}", least);
    const std::string to = fmt::format("{:.2f}", most);
    return from == to ? from : fmt::format("{} to {}", from, to);
  }

  const TrainOptions& options_;
  const MeasuringRun& run_;
  World& world_;
  Training training_;
  std::vector<int> counts_;
  std::vector<Part> parts_;
  Cluster machine_;  // on rank 0, as the next
  std::vector<TrainRow> expected_;
  bool right_ = true;
  std::size_t kept_ = 0;  // rows
  std::uint64_t measured_ = 0;
};

}  // namespace

void add_train(CommandLine& line) {
  auto options = std::make_shared<TrainOptions>();
  const auto action = [options, &line] {
    options->contenders.check_build();
    return run_measuring(line.text(), options->measuring,
                         [&](const MeasuringRun& run) { return TrainRun(*options, run).run(); });
  };
  const Subcommand command =
      line.add_subcommand("train", "Measure synthetic training steps with real allreduces",
                          "mpirun -np 4 polyring train --model resnet50 --batch 32 --gpu P100\n"
                          "  mpirun -np 256 polyring train --ranks 4..256 -J train.json",
                          action, true);
  options->compute.add_to(command);
  options->contenders.add_to(command);
  options->payload.add_to(command, "avg");
  command.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE").show_default();
  command.add_flag("--no-overlap", options->no_overlap,
                   "Begin to communicate only when the backward pass is over");
  command
      .add_option(
          "--ranks,--gpus", options->ranks,
          "Measure steps on these numbers of ranks, one after the other: 4,8,16, or 4..256, doubling; the "
          "first ranks of the job, while the others wait")
      .type_name("COUNTS");
  command.add_option("-n,--iters", options->iterations, "Steps of each algorithm")
      .show_default()
      .range(1, 1000000);
  options->measuring.add_to(command);
  add_output_option(command, options->output);
}

}  // namespace polyring
