// polyring tune: searches multi-ring's plans by measurement, and keeps the choices for later runs.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "bench/collective.hpp"
#include "bench/command.hpp"
#include "bench/options.hpp"
#include "bench/output.hpp"
#include "bench/progress.hpp"
#include "bench/rivals.hpp"
#include "bench/sizes.hpp"
#include "bench/tuned_file.hpp"
#include "bench/tuned_plans.hpp"
#include "bench/tuner.hpp"
#include "reports/files.hpp"
#include "reports/result.hpp"
#include "reports/table_cells.hpp"
#include "reports/tables.hpp"

namespace polyring {
namespace {

constexpr ElementKind kKind = ElementKind::float32;

struct TuneOptions {
  SizeOptions sizes{"1K", "64M", 4};
  std::string transport = "auto";
  std::string buffers = "library";
  std::string timeout = "120";
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
  TuneRun(const TuneOptions& options, MpiWorld& world, Watchdog& watchdog)
      : options_(options),
        world_(world),
        watchdog_(watchdog),
        counts_(options.sizes.counts(size_of(kKind))),
        timeout_(parse_timeout(options.timeout)),
        progress_(world.rank() == 0) {}

  ExitCode run() {
    if (world_.size() == 1)
      usage_error("one rank has nothing to reduce across; start it as mpirun -np 4 polyring tune");
    parse_transport(options_.transport);
    on_root(world_, [&] { prepare_file(); });
    std::vector<std::string> wrong;
    tune_all(wrong);
    progress_.clear();
    if (world_.rank() == 0) {
      for (const std::string& sentence : wrong) warn("{}; nothing was written", sentence);
    }
    if (!wrong.empty()) return ExitCode::wrong_result;
    on_root(world_, [&] { finish(); });
    return ExitCode::ok;
  }

 private:
  /// All that can be wrong with the file, before anything is measured.
  void prepare_file() {
    const auto file = options_.file.empty() ? default_tuned_file() : std::filesystem::path(options_.file);
    if (!file) usage_error("there is no default file for the choices here; name one with --file");
    file_ = *file;
    if (std::filesystem::exists(file_)) parse_tuned(read_file(file_), file_.string());
    std::error_code ignored;  // check_writable() finds out
    if (options_.file.empty()) std::filesystem::create_directories(file_.parent_path(), ignored);
    check_writable(file_);
    place_ = place_of(world_);
  }

  void tune_all(std::vector<std::string>& wrong) {
    world_.set_timeout(timeout_);
    const WorldTransport wires = open_transport(world_, options_.transport);
    Transport& transport = *wires.transport;
    place_.transport = wires.name;
    const DefaultPlans defaults({}, world_);
    const Bytes largest{static_cast<std::uint64_t>(counts_.back() * size_of(kKind))};
    const bool library = options_.buffers == "library";
    const Memory input = library ? transport.allocate(largest) : transport.scratch(largest);
    const Memory output = library ? transport.allocate(largest) : transport.scratch(largest);
    for (const Count count : counts_) {
      const Bytes payload{static_cast<std::uint64_t>(count * size_of(kKind))};
      const auto show = [&](const std::string& what) {
        progress_.show(fmt::format("{}: {}", to_text(payload), what));
      };
      const auto make = [&](const Plan& plan) {
        Rival rival = make_planned(plan, wires, kKind, ReduceOp::sum, count);
        rival.buffers = {input.get(), output.get()};
        return rival;
      };
      Tuner tuner(world_, transport, watchdog_, options_.iterations, show);
      const std::vector<Plan> starts = starting_plans(defaults, wires, count);
      const auto result = tuner.tune(count, starts, make);
      wrong = tuner.wrong();
      if (!result) return;
      outcomes_.push_back({payload, starts.front(), *result});
    }
  }

  /// The default plan, then what the default would be in the other grids.
  std::vector<Plan> starting_plans(const DefaultPlans& defaults, const WorldTransport& transport,
                                   Count count) const {
    const std::string algorithm(kTunedAlgorithm);
    const ElementSizes sizes(kKind, ReduceOp::sum, Partials::apart);
    std::vector<Plan> plans{defaults.plan_for(algorithm, {}, transport, count, sizes)};
    for (const auto& grid : rank_grids(world_.size(), world_.ranks_per_node(), world_.nodes())) {
      plans.push_back(defaults.plan_for(algorithm, {.dims = grid}, transport, count, sizes));
    }
    return plans;
  }

  void finish() const {
    std::vector<TunedPlan> choices;
    Table table({{"", "size", "B", Align::right},
                 {"", "tried", "", Align::right},
                 {"default", "plan", "", Align::left},
                 {"default", "time", "us", Align::right},
                 {"best other", "plan", "", Align::left},
                 {"best other", "time", "us", Align::right},
                 {"default time / time", "median", "", Align::right},
                 {"default time / time", "from", "", Align::right},
                 {"default time / time", "to", "", Align::right},
                 {"", "chosen", "", Align::left}});
    table.caption = fmt::format(
        "{} on {} ranks of {} host{} over {}; times are medians over out of place and "
        "in place; another plan is chosen if it is faster with 95 % confidence",
        kTunedAlgorithm, world_.size(), world_.nodes(), world_.nodes() == 1 ? "" : "s", place_.transport);
    for (const Outcome& outcome : outcomes_) {
      const TunerResult& result = outcome.result;
      table.add_row({std::to_string(outcome.payload.value), std::to_string(result.tried),
                     choices_text(outcome.by_default), number(result.default_us),
                     choices_text(result.challenger), number(result.challenger_us),
                     number(result.ratio.median), number(result.ratio.ci_low), number(result.ratio.ci_high),
                     result.better() ? "other" : "default"});
      choices.push_back({place_, outcome.payload, result.better() ? result.challenger : outcome.by_default,
                         !result.better(),
                         nanoseconds(result.better() ? result.challenger_us : result.default_us),
                         nanoseconds(result.default_us)});
    }
    add_to_tuned_file(file_, choices);
    print_out("{}\nWritten to {}\n", table.text(), file_.string());
  }

  /// Without the algorithm's name, which is always the same.
  static std::string choices_text(const Plan& plan) {
    return to_text(plan).substr(plan.algorithm.size() + 1);
  }

  const TuneOptions& options_;
  MpiWorld& world_;
  Watchdog& watchdog_;
  std::vector<Count> counts_;
  Seconds timeout_;
  Progress progress_;
  std::vector<Outcome> outcomes_;
  std::filesystem::path file_;  // on rank 0, as the next
  TuningPlace place_;
};

}  // namespace

void add_tune(CommandLine& line) {
  auto options = std::make_shared<TuneOptions>();
  const Subcommand command = line.add_subcommand(
      "tune", "Find multi-ring's fastest plans by measurement, for later runs",
      "mpirun -np 4 polyring tune -b 64K -e 64M",
      [options] {
        return run_collectively(parse_timeout(options->timeout), [&](MpiWorld& world, Watchdog& watchdog) {
          return TuneRun(*options, world, watchdog).run();
        });
      },
      true);
  options->sizes.add_to(command);
  add_transport_option(command, options->transport);
  add_buffers_option(command, options->buffers);
  command
      .add_option("-n,--iters", options->iterations,
                  "Iterations of each final; without, about half a second of each plan")
      .range(1, 1000000);
  command
      .add_option("--file", options->file,
                  "Where the choices are kept, which others stay in; without, $POLYRING_TUNED or "
                  "polyring/tuned.json in $XDG_CONFIG_HOME or ~/.config")
      .type_name("FILE");
  command.add_option("-T,--timeout", options->timeout, "Give up when nothing happens for so long")
      .show_default();
}

}  // namespace polyring
