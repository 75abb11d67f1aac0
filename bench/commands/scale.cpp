// polyring scale: the speedup and efficiency that a machine's topology allows, beside what was published.
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/cli/options.hpp"
#include "bench/cli/output.hpp"
#include "bench/cli/presentation.hpp"
#include "bench/commands/command.hpp"
#include "bench/predict/best_strategies.hpp"
#include "bench/predict/compare_published.hpp"
#include "bench/predict/compute.hpp"
#include "bench/predict/from_run.hpp"
#include "bench/predict/published_training.hpp"
#include "bench/predict/scale_checks.hpp"
#include "bench/predict/scale_request.hpp"
#include "bench/predict/scaled_machine.hpp"
#include "bench/predict/strategies.hpp"
#include "bench/predict/strategy_cases.hpp"
#include "bench/record/calibration_file.hpp"
#include "bench/record/record.hpp"
#include "bench/record/result_file.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "reports/csv.hpp"
#include "reports/markdown.hpp"
#include "reports/published.hpp"
#include "reports/tables.hpp"
#include "simulation/in_network.hpp"
#include "topology/resize.hpp"

namespace polyring {
namespace {

constexpr int kMostGlobalBatch = 1 << 30;

/// Ends what is wrong with one of several machines, where some are changed.
constexpr std::string_view kOfAllMachines =
    "; --without and other what-ifs change all machines that are compared";

struct ScaleOptions {
  MachineOptions machine;
  PlanOptions plan;
  ComputeOptions compute;
  ConditionOptions conditions;
  std::string kind = "float";
  std::string partials = "float32";
  std::string gpus;  // empty: default_counts(), or what a strategy's factors multiply to
  StrategyOptions strategies;
  std::string scaling;              // empty: as global_batch says
  std::optional<int> global_batch;  // nothing: weak scaling, or the batches of one host
  std::string framework;            // empty: what the machine's published results used
  bool ideal = false;
  std::string baseline;  // empty: as in the framework's published tables
  std::string name;      // empty: the machine's
  std::string title;     // empty: charts and reports say what they are of
  std::string bucket;    // empty: the framework's own
  bool overlap = false;
  bool no_overlap = false;
  bool explain = false;
  bool published = false;
  std::vector<std::string> runs;
  std::string calibration;
  bool algorithms_given = false;
  std::string output;
};

/// What is the same at all GPU counts: nothing, but a GPU's batch, under weak scaling.
std::optional<int> global_batch_of(const ScaleOptions& options, const Machine& host, int of_gpu) {
  if (options.scaling == "weak" && options.global_batch)
    usage_error("--global-batch is for strong scaling; leave it out, or --scaling weak");
  if (options.global_batch || options.scaling != "strong") return options.global_batch;
  const std::int64_t batch = std::int64_t{of_gpu} * host.ranks();
  if (batch > kMostGlobalBatch)
    usage_error("--batch {} for each of {} GPUs is more than {} in all; give a smaller one", of_gpu,
                host.ranks(), kMostGlobalBatch);
  return static_cast<int>(batch);
}

/// The rows as they were asked for, with `text` where that is for people, and the notes without those that
/// the text has as tables.
void show(const ResultFile& result, const std::string& text) {
  const bool for_people = format() != Format::csv && format() != Format::json;
  if (format() == Format::csv) print_result(csv_head(result.rows) + csv_body(result.rows));
  if (for_people) print_out(text);
  // In Markdown lines that follow each other are one paragraph.
  const bool markdown = format() == Format::markdown;
  for (const std::string& note : result.notes) {
    if (for_people && note.find(kBestStrategies) != std::string::npos) continue;
    print_remark(markdown ? markdown_text(note) + "\n\n" : note + "\n");
  }
}

ExitCode show_published(const ScaleOptions& options, const std::string& command) {
  ResultFile result = describe_run(command, nullptr, nullptr);
  result.title = if_any(options.title);
  std::vector<ScaleRow> rows = check_all_training();
  const std::string of_training = training_text(rows);
  std::string texts;
  for (const PublishedComparison& comparison : compare_published()) {
    texts += text(comparison) + "\n";
    const std::vector<ScaleRow> combined = combined_rows(comparison);
    rows.insert(rows.end(), combined.begin(), combined.end());
    for (const Modelled& modelled : comparison.modelled)
      rows.insert(rows.end(), modelled.rows.begin(), modelled.rows.end());
  }
  result.rows = std::move(rows);
  result.inputs = training_sources();
  result.notes = comparison_notes();
  show(result, texts + of_training);
  save(options.output, result);
  return ExitCode::ok;
}

/// How gradients are exchanged, and what that costs beside the allreduces.
void set_framework(ScalingCase& scaling, const ScaleOptions& options) {
  const Framework& framework =
      find_framework(options.framework.empty() ? framework_of(scaling.name) : options.framework);
  scaling.policy = options.bucket.empty() ? framework.bucket : parse_bucket_policy(options.bucket);
  const bool whole = scaling.policy.kind == BucketPolicy::Kind::none;
  if (options.overlap && whole) {
    usage_error(
        "without buckets all gradients are reduced at once after the backward pass, and nothing is left to "
        "--overlap; add --bucket per-tensor, or fused:64MiB");
  }
  scaling.overlap = options.overlap || (framework.overlap && !options.no_overlap && !whole);
  scaling.baseline = baseline_of(options.baseline, framework);
  // A calibration has its own error, and says nothing of what frameworks cost.
  const bool calibrated = !options.calibration.empty() && options.framework.empty();
  scaling.framework = options.ideal || calibrated ? nullptr : &framework;
  scaling.framework_stated = !options.framework.empty();
}

ScaleRequest request_from_runs(const ScaleOptions& options) {
  MeasuredTraining training = measured_training(options.runs);
  if (options.calibration.empty()) {
    usage_error(
        "of the links of these hosts too little is known to model more of them; fit them with polyring "
        "calibrate, and give --calibration");
  }
  ScaleRequest request;
  request.measured = note_of(training, options.runs);
  request.scaling = std::move(training.scaling);
  request.scaling.baseline.host = true;
  request.algorithms = options.algorithms_given ? options.plan.algorithms : training.algorithms;
  request.compute_source = training.compute_source;
  if (options.gpus.empty()) request.scaling.gpus = counts_from(request.scaling.measured);
  return request;
}

ScaleRequest request_of_machine(const ScaleOptions& options) {
  ScaleRequest request;
  ScalingCase& scaling = request.scaling;
  Inventory hosts = options.machine.load();
  scaling.machine = std::move(hosts.cluster);
  for (const std::string& fact : hosts.asked)
    request.asked.push_back(fact.starts_with("assumed") ? fact : "As asked: " + fact);
  scaling.name = options.machine.name(scaling.machine);
  scaling.model = options.compute.trained();
  set_framework(scaling, options);
  const Machine& host = scaling.machine.host(0);
  if (host.gpus.empty())
    usage_error("{} has no GPUs; choose a machine that has some by --machine or --from", host.name);
  const Gpu& gpu = host.gpus.front();
  scaling.kind = parse_element_kind(options.kind);
  scaling.attention = options.strategies.unfused_attention ? Attention::unfused : Attention::fused;
  const Compute compute = options.compute.resolve(
      scaling.model, {gpu.model, gpu.memory, size_of(scaling.kind), scaling.attention});
  scaling.compute = compute.step;
  scaling.precision = compute.precision;
  scaling.computing_range = computing_range(compute);
  scaling.batch = compute.batch;
  scaling.global_batch = global_batch_of(options, host, compute.batch);
  request.compute_source = compute.source;
  request.compute_citations = compute.citations;
  if (!compute.choice.empty()) request.asked.push_back(compute.choice);
  request.algorithms = options.plan.algorithms;
  return request;
}

ScaleRequest request_of(const ScaleOptions& options) {
  ScaleRequest request = options.runs.empty() ? request_of_machine(options) : request_from_runs(options);
  ScalingCase& scaling = request.scaling;
  scaling.kind = parse_element_kind(options.kind);
  scaling.partials = parse_partials(options.partials);
  scaling.conditions = options.conditions.resolve(scaling.model.name);
  if (!options.gpus.empty()) scaling.gpus = parse_counts(options.gpus, "--gpus");
  if (scaling.gpus.empty())
    scaling.gpus = default_counts(scaling.machine.host(0).ranks(), scaling.baseline.host);
  if (!options.name.empty()) scaling.name = options.name;
  scaling.micro_batches = options.strategies.micro_batches;
  check_algorithms(request.algorithms, options.plan, options.conditions.ask_for_costs());
  if (!options.calibration.empty()) {
    request.calibration = read_calibration(options.calibration, scaling.machine);
    scaling.machine = calibrated(std::move(scaling.machine), request.calibration->calibration);
    scaling.spread = request.calibration->calibration.error().spread;
    scaling.network_fitted = request.calibration->calibration.find(LinkClass::network) != nullptr;
  }
  return request;
}

void add_case(ScaledMachine& scaled, const ScalingCase& at, const std::string& algorithm,
              const PlanOptions& plan) {
  scaled.plain = scaled.plain || !at.strategy || at.strategy->is_plain();
  if (at.strategy) {
    const int gpus = *std::max_element(at.gpus.begin(), at.gpus.end());
    std::string note = note_of(with_share(at, gpus), for_gpus(*at.strategy, gpus));
    if (std::find(scaled.of_strategies.begin(), scaled.of_strategies.end(), note) ==
        scaled.of_strategies.end())
      scaled.of_strategies.push_back(std::move(note));
  }
  const std::vector<ScaleRow> of_case = model_scaling(at, algorithm, plan);
  scaled.rows.insert(scaled.rows.end(), of_case.begin(), of_case.end());
}

/// False where it cannot run there, and nobody asked for it.
bool add_algorithm(ScaledMachine& scaled, const std::string& algorithm, const ScaleOptions& options) {
  const StrategySettings settings{options.plan, !options.bucket.empty() || options.overlap,
                                  !options.gpus.empty(), options.no_overlap};
  try {
    for (const ScalingCase& at :
         options.strategies.cases(scaled.request.scaling, algorithm, settings, scaled.best))
      add_case(scaled, at, algorithm, options.plan);
    return true;
  } catch (const Error& error) {
    if (options.algorithms_given || has_schedule(algorithm) || error.code() != ExitCode::usage) throw;
    scaled.of_algorithms.push_back(fmt::format("Without {}: {}.", algorithm, error.what()));
    return false;
  }
}

ScaledMachine scaled_machine(const ScaleOptions& options) {
  ScaledMachine scaled;
  scaled.request = request_of(options);
  ScaleRequest& request = scaled.request;
  std::erase_if(request.algorithms,
                [&](const std::string& name) { return !add_algorithm(scaled, name, options); });
  if (scaled.plain && options.strategies.divide()) {
    request.scaling.strategy = Strategy{.pipeline = 2};  // for the inputs
  } else if (!scaled.plain) {
    request.scaling = divided(request.scaling, {.pipeline = 2}, !options.bucket.empty() || options.overlap);
  }
  return scaled;
}

/// One for each --machine that is given.
std::vector<ScaleOptions> by_machine(const ScaleOptions& options) {
  if (options.machine.machines.size() < 2) return {options};
  if (!options.name.empty()) usage_error("--name is for one machine; leave it out, or all --machine but one");
  std::vector<ScaleOptions> each;
  std::set<std::string> names;
  for (const std::string& name : options.machine.machines) {
    if (!names.insert(name).second)
      usage_error("--machine {} is given twice; give it once, or another machine beside it", name);
    each.push_back(options);
    each.back().machine.machines = {name};
  }
  return each;
}

/// Of several machines an Error says which one it is about.
std::vector<ScaledMachine> scaled_machines(const ScaleOptions& options) {
  std::vector<ScaledMachine> machines;
  for (const ScaleOptions& each : by_machine(options)) {
    try {
      machines.push_back(scaled_machine(each));
    } catch (const Error& error) {
      if (options.machine.machines.size() < 2) throw;
      throw Error(error.code(), fmt::format("--machine {}: {}{}", each.machine.machines.front(), error.what(),
                                            each.machine.what_if.none() ? "" : kOfAllMachines));
    }
    const std::string& name = machines.back().request.scaling.name;
    for (std::size_t i = 0; i + 1 < machines.size(); ++i) {
      if (machines[i].request.scaling.name == name)
        usage_error("two of the machines are called '{}'; give one of them another name in its file", name);
    }
  }
  return machines;
}

ExitCode scale(const ScaleOptions& options, const std::string& command) {
  check_output(options.output);
  if (options.published) return show_published(options, command);
  const std::vector<ScaledMachine> machines = scaled_machines(options);
  ResultFile result = describe_run(command, &machines.front().request.scaling.machine, nullptr);
  result.title = if_any(options.title);
  std::vector<ScaleRow> rows;
  std::string best_tables;
  for (const ScaledMachine& scaled : machines) {
    best_tables += scaled.best.tables;
    rows.insert(rows.end(), scaled.rows.begin(), scaled.rows.end());
    for (Input& input : inputs_of(scaled.request)) {
      if (std::find(result.inputs.begin(), result.inputs.end(), input) == result.inputs.end())
        result.inputs.push_back(std::move(input));
    }
  }
  result.rows = std::move(rows);
  result.notes = notes_of(machines);
  show(result, shown(scale_table(std::get<std::vector<ScaleRow>>(result.rows))) + "\n" +
                   (is_quiet() ? "" : best_tables) + (options.explain ? explanation(result) : ""));
  save(options.output, result);
  return ExitCode::ok;
}

/// How the samples and the work of a step are divided among GPUs.
void add_division(Subcommand command, ScaleOptions& options) {
  command
      .add_option("--scaling", options.scaling,
                  "What is the same at all counts: weak, the batch of a GPU; strong, that of all together")
      .show_default("weak")
      .names({"scaling", {"weak", "strong"}});
  command
      .add_option("--global-batch", options.global_batch,
                  "Strong scaling with so many samples per step; by default --batch for each GPU of one host")
      .range(1, kMostGlobalBatch)
      .type_name("N");
  options.strategies.add_to(command);
}

void add_framework(Subcommand command, ScaleOptions& options) {
  command
      .add_option(
          "--framework", options.framework,
          "What exchanges the gradients, with its buckets, overlap and costs; by default what the machine's "
          "published results used, else ddp")
      .type_name("NAME")
      .names({"framework", framework_names()});
  command.add_flag(
      "--ideal", options.ideal,
      "Computing and allreduces alone: no cost of a framework, no stragglers, links at their rate");
  command.add_option("--bucket", options.bucket, "none, per-tensor or fused:SIZE; by default the framework's")
      .type_name("TEXT");
  command.add_flag("--overlap", options.overlap, "Communicate while the backward pass goes on");
  command.add_flag("--no-overlap", options.no_overlap, "Communicate after the backward pass");
  command.option("--no-overlap").excludes({"--overlap"});
  std::vector<std::string> baselines{"gpu", "host"};
  for (const std::string_view name : algorithm_names(Collective::allreduce)) baselines.emplace_back(name);
  for (const std::string& name : modelled_algorithms()) baselines.push_back(name);
  command
      .add_option(
          "--baseline", options.baseline,
          "What efficiency is over: one gpu that computes alone; one host, with each row's algorithm; or one "
          "host with this algorithm; by default gpu, and host where published tables do so")
      .type_name("gpu|host|NAME")
      .names({"baseline", std::move(baselines)});
  command.add_option("--name", options.name, "The machine's name in tables and charts").type_name("TEXT");
  command.add_option("--title", options.title, "The title of charts and reports of the result")
      .type_name("TEXT");
}

}  // namespace

void add_scale(CommandLine& line) {
  auto options = std::make_shared<ScaleOptions>();
  const Subcommand command = line.add_subcommand(
      "scale", "Model speedup and efficiency over GPUs, beside published figures",
      "polyring scale --machine minsky --model resnet50 --gpus 4..256\n"
      "  polyring scale --machine minsky --algorithm multi-ring,in-network --global-batch 8192\n"
      "  polyring scale --machine summit --batch 96 --algorithm multi-ring --gpus 6,1536,27648 "
      "--filesystem 500GB/s --jitter 5%\n"
      "  polyring scale --machine dgx-h100 --model llama3-70b --gpus 512 --algorithm nccl --strategy best\n"
      "  polyring scale --from-run 2hosts.json --from-run 4hosts.json --calibration calibration.json",
      [options, &line] {
        options->algorithms_given = line.given("--algorithm");
        return scale(*options, line.text());
      });
  options->machine.add_to(command, true);
  options->compute.add_to(command);
  options->plan.add_to(command, {"multi-ring", "nccl", "mpi"}, true, Collective::allreduce,
                       modelled_algorithms());
  command.option("--algorithm")
      .append_description("; nccl and mpi for what these would choose; in-network for switches that reduce");
  command
      .add_option(
          "--gpus,--ranks", options->gpus,
          "GPU counts: a list whose parts may be ranges that double: 4..256,1000; by default those of "
          "--strategy, if it has all")
      .show_default("4..256")
      .type_name("LIST");
  add_framework(command, *options);
  add_division(command, *options);
  options->conditions.add_to(command);
  command.add_option("-d,--datatype", options->kind, "What gradients are sent as")
      .show_default()
      .type_name("TYPE")
      .names({"type", element_kind_names()});
  add_partials_option(command, options->partials);
  command
      .add_option("--from-run", options->runs,
                  "Results of polyring train: what was measured, and from it more hosts like "
                  "those; may be repeated")
      .one_value_each_time()
      .type_name("FILE")
      .excludes({"--machine",
                 "--from",
                 "--sysfs",
                 "--fabric",
                 "--assume",
                 "--rails",
                 "--model",
                 "--batch",
                 "--compute-ms",
                 "--gpu",
                 "--precision",
                 "--utilisation",
                 "--framework",
                 "--ideal",
                 "--bucket",
                 "--overlap",
                 "--no-overlap",
                 "--baseline",
                 "--name",
                 "--strategy",
                 "--scaling",
                 "--global-batch",
                 "--unfused-attention"});
  command
      .add_option("--calibration", options->calibration,
                  "Links as polyring calibrate found them, in place of what is stated; with its error")
      .type_name("FILE");
  command.add_flag("--published", options->published,
                   "Every published result beside the model, for each combination of what was not "
                   "published: rails, overlap, batch");
  command.add_flag("--explain", options->explain,
                   "Also what limits each row, and every input with its source");
  add_output_option(command, options->output);
  command.option("--published").excludes_all_but({"--output_file", "--title"});
}

}  // namespace polyring
