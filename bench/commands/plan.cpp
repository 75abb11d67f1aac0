// polyring plan: how an allreduce would be done on a machine, what it moves, and the least time that it can
// take.
#include "collectives/schedule/plan.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/cli/sizes.hpp"
#include "bench/commands/command.hpp"
#include "bench/predict/expected.hpp"
#include "bench/predict/plan_explained.hpp"
#include "bench/record/calibration_file.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/tables.hpp"
#include "simulation/price_planner.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

struct PlanCommandOptions {
  MachineOptions machine;
  PlanOptions plan;
  std::string kind = "float";
  std::string partials = "float32";
  std::string size = "100MB";
  int ranks = 0;            // 0: those of the machine
  std::string calibration;  // empty: none
  bool explain = false;
};

/// What the user asked for is kept; the rest is what is fastest when simulated, at the front.
std::vector<ConsideredPlan> consider(const PlanCommandOptions& options, const PlannedFor& planned) {
  options.plan.refuse_without_schedule("plan");
  const std::string& algorithm = options.plan.algorithms.front();
  return consider_plans(modelled_problem(algorithm, planned.cluster, planned.count, planned.sizes),
                        planned.cluster, planned.router, options.plan.constraints(algorithm));
}

void print_dimensions(const Plan& plan, const Schedule& schedule) {
  Table table({{"", "dimension", "", Align::left},
               {"", "ranks", "", Align::right},
               {"", "stride", "", Align::right},
               {"", "pattern", "", Align::left},
               {"", "steps each way", "", Align::right},
               {"", "groups side by side", "", Align::right},
               {"", "first group", "", Align::left}});
  const Lane& lane = schedule.lanes.front();
  for (std::size_t i = 0; i < lane.dimensions.size(); ++i) {
    const Dimension& dimension = lane.dimensions[i];
    std::string members;
    constexpr int kShown = 8;
    for (int position = 0; position < std::min(dimension.size(), kShown); ++position) {
      members += fmt::format("{}{}", members.empty() ? "" : " ", dimension.rank_at(0, position));
    }
    if (dimension.size() > kShown) members += " …";
    table.add_row({fmt::format("{}", i), fmt::format("{}", dimension.size()),
                   fmt::format("{}", dimension.stride()), std::string(dimension.pattern().name()),
                   fmt::format("{}", dimension.steps()), fmt::format("{}", schedule.ranks / dimension.size()),
                   members});
  }
  print_out("{}\n\n{}\n", to_text(plan), table.text());
}

void print_times(const Price& price, const Simulation& simulation, const Bound& bound, const Router& router,
                 Bytes payload) {
  Table table({{"", "stage", "", Align::left},
               {"", "time of one chunk", "", Align::right},
               {"", "limited by", "", Align::left}});
  for (const StagePrice& stage : price.stages) {
    const char* what = stage.stage.kind == StageKind::reduce ? "reduce" : "spread";
    table.add_row({fmt::format("{} over dimension {}", what, stage.stage.dimension), to_text(stage.time),
                   stage.bottleneck < 0 ? "latency" : router.name(stage.bottleneck)});
  }
  const double bandwidth = static_cast<double>(payload.value) / simulation.time.value;
  print_out("{}\nmodelled time {}, {} of payload a second", table.text(), to_text(simulation.time),
            to_text(Bandwidth{bandwidth}));
  if (simulation.bottleneck >= 0) {
    print_out("; {} is busy {:.0f} % of it", router.name(simulation.bottleneck), 100 * simulation.busy);
  }
  print_out("\n");
  if (bound.time.value > 0) {
    print_out("bound         {} ({}); the plan reaches {:.0f} % of it\n", to_text(bound.time), bound.cut,
              100 * bound.time.value / simulation.time.value);
  }
}

/// The plan in one row, at full precision. Without what is unknown.
Table summary(const Plan& plan, const RankWork& work, const Cluster& cluster, Bytes payload,
              const std::optional<Simulation>& simulation, const Router& router) {
  Table table({{"", "algorithm", "", Align::left},
               {"", "dims", "", Align::left},
               {"", "patterns", "", Align::left},
               {"", "lanes", ""},
               {"", "chunk", "bytes"},
               {"", "orders", "", Align::left},
               {"", "ranks", ""},
               {"", "hosts", ""},
               {"", "size", "bytes"},
               {"rank 0", "sent", "bytes"},
               {"rank 0", "received", "bytes"},
               {"", "modelled", "us"},
               {"", "bound", "us"},
               {"", "bottleneck", "", Align::left}});
  const auto microseconds = [](Seconds time) { return fmt::format("{}", time.value * 1e6); };
  const Bound bound = simulation ? expected_bound(cluster, payload) : Bound{};
  table.add_row({plan.algorithm, dims_text(plan.dims), patterns_text(plan), std::to_string(plan.lanes),
                 std::to_string(plan.chunk.value), plan.orders.empty() ? "" : orders_text(plan.orders),
                 std::to_string(plan.ranks()), std::to_string(cluster.host_count()),
                 std::to_string(payload.value), std::to_string(work.sent), std::to_string(work.received),
                 simulation ? microseconds(simulation->time) : "",
                 bound.time.value > 0 ? microseconds(bound.time) : "",
                 simulation ? bottleneck_text(*simulation, router) : ""});
  return table;
}

ExitCode plan(const PlanCommandOptions& options) {
  const Inventory hosts = options.machine.load();
  Cluster machine = hosts.cluster;
  if (!options.calibration.empty())
    machine = calibrated(machine, read_calibration(options.calibration, machine).calibration);
  const auto dims = options.plan.asked_dims();
  const int ranks = options.ranks != 0 ? options.ranks : dims ? Plan{"", *dims}.ranks() : machine.ranks();
  const Cluster cluster = with_ranks(machine, ranks);
  const ElementKind kind = parse_element_kind(options.kind);
  const int size = size_of(kind);
  const Count count = static_cast<Count>(parse_payload(options.size, "--size").value) / size;
  if (count < 1) usage_error("--size {} holds no {}; give {} or more", options.size, options.kind, size);
  const Bytes payload{static_cast<std::uint64_t>(count * size)};

  const Router router(cluster);
  const ElementSizes sizes(kind, ReduceOp::sum, parse_partials(options.partials));
  const PlannedFor planned{cluster, router, count, sizes};
  std::vector<ConsideredPlan> considered = consider(options, planned);
  const std::string unknown = considered.front().unknown;
  if (unknown.empty())
    std::erase_if(considered, [](const ConsideredPlan& other) { return !other.unknown.empty(); });
  const Plan& chosen = considered.front().plan;
  const Schedule schedule = make_schedule(chosen, ranks, count, size);
  const std::string ignored = options.plan.ignored();
  if (!ignored.empty()) warn(ignored);

  const RankWork work = work_of(schedule, 0, sizes);
  if (format() != Format::text) {
    if (options.explain) usage_error("--explain is for people; leave it out, or take --format text");
    const std::optional<Simulation> simulation =
        unknown.empty() ? considered.front().simulation : std::nullopt;
    print_table(summary(chosen, work, cluster, payload, simulation, router));
    const char* apart = format() == Format::markdown ? "\n" : "";  // else it were a row
    for (const std::string& sentence : hosts.asked) print_remark(fmt::format("{}{}\n", apart, sentence));
    return ExitCode::ok;
  }
  print_out("{} on {} ({}), allreduce of {}\n", counted(ranks, "rank"), counted(cluster.host_count(), "host"),
            options.machine.name(machine), to_text(payload));
  for (const std::string& sentence : hosts.asked) print_out("{}\n", sentence);
  print_dimensions(chosen, schedule);
  print_out("rank 0 sends {} and receives {} in {} steps a chunk, {} lane{} of {} chunk{}\n\n",
            to_text(Bytes{static_cast<std::uint64_t>(work.sent)}),
            to_text(Bytes{static_cast<std::uint64_t>(work.received)}), work.steps, schedule.lanes.size(),
            schedule.lanes.size() == 1 ? "" : "s", schedule.lanes.front().chunks,
            schedule.lanes.front().chunks == 1 ? "" : "s");
  if (unknown.empty()) {
    print_times(price(schedule, cluster, router, sizes), *considered.front().simulation,
                expected_bound(cluster, payload), router, payload);
    if (options.explain)
      print_out("\n{}\n{}", explain_choice(considered, planned), draw_rings(chosen, planned));
  } else {
    print_out(
        "{}: there is no modelled time{}; give it by --assume, fill it in in the JSON of polyring probe, or "
        "use --machine.\n",
        unknown, options.explain ? ", and nothing to explain a choice by" : "");
  }
  return ExitCode::ok;
}

}  // namespace

void add_plan(CommandLine& line) {
  auto options = std::make_shared<PlanCommandOptions>();
  const Subcommand command = line.add_subcommand(
      "plan", "Show dimensions, rings, lanes, bytes moved, modelled time and the bound",
      "polyring plan --machine minsky --ranks 256 --dims 4x8x8\n  polyring plan --machine "
      "dgx1-v100 --size 256MB --explain",
      [options] { return plan(*options); });
  options->machine.add_to(command);
  options->plan.add_to(command, {"multi-ring"}, false, Collective::allreduce, {}, modelled_algorithms());
  command.add_option("-d,--datatype", options->kind, "float, double, half, bfloat16, int32 or int64")
      .show_default()
      .type_name("TYPE")
      .names({"type", element_kind_names()});
  add_partials_option(command, options->partials);
  command.add_option("--ranks,--gpus", options->ranks, "Ranks; without, those of --dims or of the machine")
      .type_name("N")
      .range(1, 1 << 24);
  command.add_option("--size", options->size, "Payload of each rank").show_default().type_name("SIZE");
  command
      .add_option("--calibration", options->calibration,
                  "Links as polyring calibrate found them, in place of what is stated")
      .type_name("FILE");
  command.add_flag("--explain", options->explain,
                   "Add why this plan won and over which others, the rings drawn, and the links left unused");
  add_format_option(command);
}

}  // namespace polyring
