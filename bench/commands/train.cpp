// polyring train: measures synthetic training steps, whose allreduces are real.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/commands/train_steps.hpp"
#include "bench/record/result_file.hpp"
#include "bench/record/run_cluster.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/session.hpp"
#include "reports/tables.hpp"
#include "reports/wrong_results.hpp"

namespace polyring {
namespace {

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
        part.gpu_notes = part.steps->gpu_notes();
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
    std::optional<std::string> note;     // on rank 0, of its plans
    std::vector<std::string> gpu_notes;  // on rank 0, once it is measured
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
          options_, training_,
          MeasuringRun{run_.command, run_.timeout, world, run_.watchdog, run_.load, run_.own_host});
      std::vector<TrainRow> rows = part.steps->expected();
      if (ranks == counts_.back()) {
        const auto& gpus = part.steps->gpus();
        machine_ = gpus ? gpus->cluster : host_memory_cluster(world);
      }
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
    options_.contenders.transport.gpu.describe(outline.header, parts_.back().steps->gpus(),
                                               "All times are by CUDA's events.");
    outline.header.notes.push_back(
        fmt::format("The computation is simulated by {}; its time, {:.1f} ms a step, is {}.",
                    options_.contenders.transport.gpu.on_gpu() ? "kernels on each rank's GPU" : "sleeping",
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
    for (const Part& part : parts_) {
      for (const std::string& note : part.gpu_notes)
        if (std::ranges::count(session.result().notes, note) == 0) session.add_note(note);
    }
    session.remark("\n");
    const Table profile = gpu_profile_table(rows);
    if (!profile.empty())
      session.remark(
          "What the GPU of rank 0 did in a step; percents are of all activities together, which may "
          "overlap:\n\n" +
          shown(profile) + "\n");
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
    options->check();
    const std::string own_host =
        options->contenders.transport.gpu.probe(parse_timeout(options->measuring.timeout));
    return run_measuring(line.text(), options->measuring, own_host,
                         [&](const MeasuringRun& run) { return TrainRun(*options, run).run(); });
  };
  const Subcommand command = line.add_subcommand(
      "train", "Measure synthetic training steps with real allreduces",
      "mpirun -np 4 polyring train --model resnet50 --batch 32 --gpu P100\n"
      "  mpirun -np 8 polyring train --device cuda --algorithm multi-ring,nccl --compute-ms 100\n"
      "  mpirun -np 256 polyring train --ranks 4..256 -J train.json",
      action, true);
  options->compute.add_to(command);
  options->contenders.add_to(command);
  options->contenders.transport.gpu.add_to(command);
  options->payload.add_to(command, "avg");
  command.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE").show_default();
  command.add_flag("--no-overlap", options->no_overlap,
                   "Begin to communicate only when the backward pass is over");
  command
      .add_option(
          "--ranks", options->ranks,
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
