// polyring tune: searches multi-ring's plans by measurement, and keeps the choices for later runs.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "base/files.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/cli/sizes.hpp"
#include "bench/commands/command.hpp"
#include "bench/commands/measuring.hpp"
#include "bench/contenders/contenders.hpp"
#include "bench/measure/tuner.hpp"
#include "bench/plans/tuned_file.hpp"
#include "bench/plans/tuned_plans.hpp"
#include "bench/record/emulation.hpp"
#include "bench/session/collective.hpp"
#include "bench/session/memory_check.hpp"
#include "bench/session/session.hpp"
#include "collectives/schedule/candidates.hpp"
#include "reports/result.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

constexpr ElementKind kKind = ElementKind::float32;

struct TuneOptions {
  SizeOptions sizes{"1K", "64M", 4};
  TransportOptions transport;
  std::string buffers = "library";
  MeasuringOptions measuring;
  std::string file;  // empty: the default one
  int iterations = 0;
};

/// Microseconds, no more exact than clocks are.
double nanoseconds(double us) { return std::round(us * 1e3) / 1e3; }

struct Outcome {
  Bytes payload;
  Plan by_default;
  TunerResult result;
};

class TuneRun {
 public:
  TuneRun(const TuneOptions& options, const MeasuringRun& run)
      : options_(options),
        run_(run),
        world_(run.world),
        counts_(options.sizes.counts(size_of(kKind))),
        gpus_(gpu_hosts(world_, options.transport.gpu, run.own_host)) {}

  ExitCode run() {
    if (world_.size() == 1)
      usage_error(
          "one rank has nothing to reduce across; start it as mpirun -np 4 polyring tune, or as polyring "
          "tune -g 4");
    on_root(world_, [&] { prepare_file(); });
    Session session(world_);
    std::vector<std::string> wrong;
    tune_all(session, wrong);
    if (world_.rank() == 0) {
      for (const std::string& sentence : wrong) warn("{}; nothing was written", sentence);
    }
    if (!wrong.empty()) return ExitCode::wrong_result;
    run_.add_conditions(session, {});
    on_root(world_, [&] { finish(session); });
    return ExitCode::ok;
  }

 private:
  /// All that can be wrong with the file, before anything is measured.
  void prepare_file() {
    const auto file = options_.file.empty() ? default_tuned_file() : std::filesystem::path(options_.file);
    if (!file) usage_error("there is no default file for the choices here; name one with --tuned");
    file_ = *file;
    std::error_code ignored;  // check_writable() finds out
    if (std::filesystem::exists(file_, ignored)) parse_tuned(read_file(file_), file_.string());
    if (options_.file.empty()) std::filesystem::create_directories(file_.parent_path(), ignored);
    check_writable(file_);
    place_ = place_of(world_, gpu().data_device());
    source_ = gpu().is_software() ? Source::emulated : source_here();
  }

  const GpuOptions& gpu() const { return options_.transport.gpu; }

  void tune_all(Session& session, std::vector<std::string>& wrong) {
    const std::unique_ptr<Communicator> opened = run_.connect(options_.transport);
    Communicator& communicator = *opened;
    const Job job = run_.job(communicator);
    place_.transport = communicator.joined().name;
    const JobPlanner planner({}, world_, gpus_);
    fit_memory(planner, communicator);
    const PayloadMemory memory(job.transport, kKind, counts_.back(), options_.buffers == "library");
    open(session, planner, communicator);
    for (const Count count : counts_) {
      const Bytes payload = bytes_of(count, kKind);
      session.step(to_text(payload));
      const auto show = [&](const std::string& what) { session.show(what); };
      const auto make = [&](const Plan& plan) {
        Contender contender = make_planned(plan, communicator, {.count = count, .kind = kKind});
        contender.buffers = memory.buffers();
        return contender;
      };
      Tuner tuner(job, options_.iterations, show, held_by_executors(job.transport));
      const std::vector<Plan>& starts = starting_plans(planner, communicator, count);
      const auto result = tuner.tune(count, starts, make);
      wrong = tuner.wrong();
      if (!result) return;
      keep(session, {payload, starts.front(), *result});
    }
  }

  /// The default plan, then what the default would be in the other grids. Collective at first.
  const std::vector<Plan>& starting_plans(const JobPlanner& planner, const Communicator& communicator,
                                          Count count) {
    std::vector<Plan>& plans = starts_[count];
    if (!plans.empty()) return plans;
    const std::string algorithm(kTunedAlgorithm);
    const Problem problem = planner.problem(algorithm, communicator, {.count = count, .kind = kKind});
    plans.push_back(planner.choose(problem, {}).plan);
    for (const auto& grid : rank_grids(world_.size(), world_.ranks_per_node(), world_.nodes()))
      plans.push_back(planner.choose(problem, {.dims = grid}).plan);
    return plans;
  }

  /// Leaves sizes out that would take more memory than there is. Collective.
  void fit_memory(const JobPlanner& planner, const Communicator& communicator) {
    const auto need = [&](Count largest) {
      MemoryCount memory(communicator.transport());
      const PayloadMemory payloads(memory, kKind, largest, options_.buffers == "library");
      const CollectiveOf what{.count = largest, .kind = kKind};
      const MeasureMemory measuring(memory, what);
      const Plan by_default = starting_plans(planner, communicator, largest).front();
      const auto baseline = make_executor(by_default, what, memory);
      const Memory of_round = memory.scratch(Tuner::round_memory(largest));
      return memory.most();
    };
    const Fitting fitting =
        fit_counts(world_, counts_, size_of(kKind), true, need, memory_room(world_, gpu()));
    counts_.resize(fitting.counts);
    if (world_.rank() == 0 && !fitting.sentence.empty()) warn(fitting.sentence);
  }

  /// With all that is known before anything is measured. Collective.
  void open(Session& session, const JobPlanner& planner, const Communicator& communicator) {
    std::vector<TuneRow> expected;
    for (const Count count : counts_) {
      constexpr double kWide_us = 999'999;
      constexpr std::size_t kLonger = 8;  // than the plans that are known: more lanes, other chunks
      TuneRow row = described(bytes_of(count, kKind));
      row.default_us = row.other_us = kWide_us;
      const std::vector<Plan>& starts = starting_plans(planner, communicator, count);
      row.default_plan = choices_text(starts.front());
      for (const Plan& plan : starts) {
        const std::string text = choices_text(plan) + std::string(kLonger, ' ');
        if (text.size() > row.other_plan.size()) row.other_plan = text;
      }
      expected.push_back(std::move(row));
    }
    on_root(world_, [&] {
      Session::Outline outline;
      outline.output = file_.string();
      outline.header = run_.header(nullptr);
      gpu().describe(outline.header, gpus_);
      outline.header.rows = std::vector<TuneRow>{};
      outline.planned = counts_.size();
      outline.table = [](const Rows& rows) { return tune_table(std::get<std::vector<TuneRow>>(rows)); };
      outline.expected = tune_table(expected);
      outline.weights.assign(counts_.size(), 1);
      session.open(std::move(outline));
    });
  }

  /// A row without what is measured.
  TuneRow described(Bytes payload) const {
    TuneRow row;
    row.size_bytes = payload.value;
    row.ranks = world_.size();
    row.nodes = world_.nodes();
    row.transport = place_.transport;
    row.source = source_;
    return row;
  }

  void keep(Session& session, const Outcome& outcome) {
    const TunerResult& result = outcome.result;
    TuneRow row = described(outcome.payload);
    row.tried = result.tried;
    row.default_plan = choices_text(outcome.by_default);
    row.default_us = result.default_us;
    row.other_plan = choices_text(result.challenger);
    row.other_us = result.challenger_us;
    row.ratio = result.ratio.median;
    row.ratio_low = result.ratio.ci_low;
    row.ratio_high = result.ratio.ci_high;
    row.other_chosen = result.better();
    session.keep(world_, std::vector<TuneRow>{row}, outcomes_.size(), outcomes_.size() + 1);
    outcomes_.push_back(outcome);
    if (world_.rank() == 0) session.print_rows();
  }

  void finish(Session& session) const {
    for (const std::string& note : session.result().notes) session.remark(fmt::format("\n{}\n", note));
    std::vector<TunedPlan> choices;
    for (const Outcome& outcome : outcomes_) {
      const TunerResult& result = outcome.result;
      choices.push_back({place_, outcome.payload, result.better() ? result.challenger : outcome.by_default,
                         !result.better(),
                         nanoseconds(result.better() ? result.challenger_us : result.default_us),
                         nanoseconds(result.default_us)});
    }
    session.finish([&](const ResultFile&) {
      add_to_tuned_file(file_, choices);
      return file_.string();
    });
  }

  /// Without the algorithm's name, which is always the same.
  static std::string choices_text(const Plan& plan) {
    return to_text(plan, true).substr(plan.algorithm.size() + 1);
  }

  const TuneOptions& options_;
  const MeasuringRun& run_;
  World& world_;
  std::vector<Count> counts_;
  std::optional<JobHosts> gpus_;
  std::map<Count, std::vector<Plan>> starts_;
  std::vector<Outcome> outcomes_;
  std::filesystem::path file_;  // on rank 0, as the next
  TuningPlace place_;
  Source source_ = Source::measured;
};

}  // namespace

void add_tune(CommandLine& line) {
  auto options = std::make_shared<TuneOptions>();
  const Subcommand command = line.add_subcommand(
      "tune", "Find multi-ring's fastest plans by measurement, for later runs",
      "mpirun -np 4 polyring tune -b 64K -e 64M\n"
      "  polyring tune --device cuda -g 4",
      [options, &line] {
        const GpuOptions& gpu = options->transport.gpu;
        gpu.check();
        const std::string own_host = gpu.probe(parse_timeout(options->measuring.timeout));
        return run_measuring(line.text(), options->measuring, own_host,
                             [&](const MeasuringRun& run) { return TuneRun(*options, run).run(); });
      },
      true);
  options->sizes.add_to(command);
  options->transport.add_to(command);
  options->transport.gpu.add_to(command);
  add_buffers_option(command, options->buffers);
  command
      .add_option("-n,--iters", options->iterations,
                  "Iterations of each final; without, about half a second of each plan")
      .range(1, 1000000);
  command
      .add_option("--tuned,--file", options->file,
                  "Where the choices are kept, which others stay in; without, $POLYRING_TUNED or "
                  "polyring/tuned.json in $XDG_CONFIG_HOME or ~/.config")
      .type_name("FILE");
  options->measuring.add_to(command);
  add_presentation_options(command);
}

}  // namespace polyring
