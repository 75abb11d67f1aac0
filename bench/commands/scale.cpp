// polyring scale: the speedup and efficiency that a machine's topology allows, beside what was published.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/command.hpp"
#include "bench/compute.hpp"
#include "bench/mirror.hpp"
#include "bench/options.hpp"
#include "bench/record.hpp"
#include "bench/scaling.hpp"
#include "bench/strategies.hpp"
#include "collectives/catalogue.hpp"
#include "reports/published.hpp"
#include "reports/tables.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

constexpr const char* kDefaultGpus = "4..256";

struct ScaleOptions {
  MachineOptions machine;
  PlanOptions plan;
  ComputeOptions compute;
  ConditionOptions conditions;
  std::string kind = "float";
  std::string gpus;  // empty: kDefaultGpus, or what a strategy's factors multiply to
  std::vector<std::string> strategies;
  std::optional<int> micro_batches;
  std::string bucket = "none";
  bool overlap = false;
  bool explain = false;
  bool published = false;
  std::string output;
};

/// Everything that the numbers rest on, each with its source.
std::vector<Input> inputs_of(const ScalingCase& scaling, const Compute& compute) {
  std::vector<Input> inputs{{"computation per step", to_text(compute.step.total()), compute.source},
                            {"gradients",
                             fmt::format("{} elements in {} tensors", scaling.model.total_elements(),
                                         scaling.model.gradients.size()),
                             scaling.model.summary}};
  const std::vector<Input> of_conditions = inputs_of(scaling.conditions);
  inputs.insert(inputs.end(), of_conditions.begin(), of_conditions.end());
  for (const Citation& citation : scaling.machine.host(0).citations)
    inputs.push_back({scaling.name, citation.fact, citation.source});
  for (const Citation& citation : scaling.machine.fabric.citations)
    inputs.push_back({"fabric", citation.fact, citation.source});
  return inputs;
}

std::vector<std::string> notes_of(const ScalingCase& scaling, const Compute& compute,
                                  const std::vector<std::string>& algorithms) {
  const int rails = rails_of(scaling.machine.host(0));
  std::vector<std::string> notes{
      fmt::format(
          "Modelled: {} NIC{} a host, batch {}, buckets {}, {}; nothing is fitted to the published figures.",
          rails, rails == 1 ? "" : "s", scaling.batch, to_text(scaling.policy),
          scaling.overlap ? "communication overlaps the backward pass" : "no overlap"),
      fmt::format("Computation: {}.", compute.source),
      "Not validated: how far these times are from those of a real cluster has not been measured."};
  const std::vector<std::string> of_conditions = notes_of(scaling.conditions);
  notes.insert(notes.end(), of_conditions.begin(), of_conditions.end());
  for (const std::string& algorithm : algorithms) {
    if (const auto* published = find_published(scaling.name, scaling.model.name, algorithm)) {
      notes.push_back(fmt::format("Published: {} ({}).", published->system, published->source));
    }
  }
  return notes;
}

/// What each row's largest allreduce waits for, and where every number that goes in was read.
void explain(const std::vector<ScaleRow>& rows, const std::vector<Input>& inputs) {
  Table limits({{"", "algorithm", "", Align::left},
                {"", "gpus", "", Align::right},
                {"", "dims", "", Align::left},
                {"", "lanes", "", Align::right},
                {"", "chunk", "", Align::right},
                {"", "busy longest in the largest allreduce", "", Align::left}});
  for (const ScaleRow& row : rows) {
    limits.add_row({row.algorithm, fmt::format("{}", row.gpus), row.dims, fmt::format("{}", row.lanes),
                    row.chunk_bytes == 0 ? "whole" : to_text(Bytes{row.chunk_bytes}),
                    row.bottleneck.value_or("")});
  }
  Table sources(
      {{"", "input", "", Align::left}, {"", "value", "", Align::left}, {"", "source", "", Align::left}});
  for (const Input& input : inputs) sources.add_row({input.name, input.value, input.source});
  fmt::print("{}\n{}\n", limits.text(), sources.text());
}

ExitCode show_published(const ScaleOptions& options, const std::string& command) {
  const std::vector<Mirror> mirrors = mirror_published();
  ResultFile result = describe_run(command, nullptr, nullptr);
  std::vector<ScaleRow> rows;
  for (const Mirror& mirror : mirrors) {
    fmt::print("{}\n", text(mirror));
    for (const Modelled& modelled : mirror.modelled)
      rows.insert(rows.end(), modelled.rows.begin(), modelled.rows.end());
  }
  result.rows = std::move(rows);
  save(options.output, result);
  return ExitCode::ok;
}

/// For each strategy the same case, at the GPU counts that are asked for, or that it is for.
std::vector<ScalingCase> by_strategy(const ScalingCase& scaling, const ScaleOptions& options) {
  std::vector<ScalingCase> cases;
  for (const std::string& text : options.strategies) {
    ScalingCase& at = cases.emplace_back(scaling);
    at.strategy = parse_strategy(text);
    if (options.gpus.empty() && at.strategy->replicas > 0) {
      const std::int64_t product = at.strategy->replica_gpus() * at.strategy->replicas;
      at.gpus = parse_counts(std::to_string(product), "the strategy's GPUs");
    }
  }
  const auto pipelined = [](const ScalingCase& at) { return at.strategy->pipeline > 1; };
  if (options.micro_batches && std::none_of(cases.begin(), cases.end(), pipelined))
    usage_error("--micro-batches are a pipeline's; give a --strategy with pipeline, or leave them out");
  if (cases.empty()) cases.push_back(scaling);
  return cases;
}

/// NCCL and MPI choose their own plans.
void check_algorithms(const PlanOptions& plan) {
  bool all_vendors = true;
  for (const std::string& algorithm : plan.algorithms) {
    if (is_vendor(algorithm)) continue;
    find_algorithm(algorithm);
    all_vendors = false;
  }
  if (all_vendors && !plan.asks_nothing()) {
    usage_error(
        "nccl and mpi choose their own plans; leave --dims, --ddl-options, --patterns, --lanes and --chunk "
        "out");
  }
}

ExitCode scale(const ScaleOptions& options, const std::string& command) {
  if (!options.output.empty()) check_writable(options.output);
  if (options.published) return show_published(options, command);
  ScalingCase scaling;
  scaling.machine = options.machine.load();
  scaling.name = options.machine.name(scaling.machine);
  scaling.model = make_model(options.compute.model);
  scaling.batch = options.compute.batch;
  scaling.policy = parse_bucket_policy(options.bucket);
  scaling.overlap = options.overlap;
  scaling.kind = parse_element_kind(options.kind);
  scaling.conditions = options.conditions.resolve(scaling.model.name);
  scaling.gpus = parse_counts(options.gpus.empty() ? kDefaultGpus : options.gpus, "--gpus");
  scaling.micro_batches = options.micro_batches;
  const Machine& host = scaling.machine.host(0);
  if (host.gpus.empty())
    usage_error("{} has no GPUs; choose a machine that has some by --machine or --from", host.name);
  const Compute compute = options.compute.resolve(scaling.model, host.gpus.front().model);
  scaling.compute = compute.step;
  check_algorithms(options.plan);

  std::vector<ScaleRow> rows;
  const std::vector<ScalingCase> cases = by_strategy(scaling, options);
  for (const std::string& algorithm : options.plan.algorithms) {
    for (const ScalingCase& at : cases) {
      const std::vector<ScaleRow> of_case = model_scaling(at, algorithm, options.plan);
      rows.insert(rows.end(), of_case.begin(), of_case.end());
    }
  }
  ResultFile result = describe_run(command, &scaling.machine, nullptr);
  result.inputs = inputs_of(scaling, compute);
  for (const std::string& algorithm : options.plan.algorithms) {
    if (!is_vendor(algorithm)) continue;
    for (const Citation& citation : vendor_inputs(scaling, algorithm))
      result.inputs.push_back({algorithm, citation.fact, citation.source});
  }
  result.notes = notes_of(scaling, compute, options.plan.algorithms);
  for (const ScalingCase& at : cases)
    if (at.strategy) result.notes.push_back(note_of(at, for_gpus(*at.strategy, at.gpus.back())));
  fmt::print("{}\n", scale_table(rows).text());
  if (options.explain) explain(rows, result.inputs);
  for (const std::string& note : result.notes) fmt::print("{}\n", note);
  result.rows = std::move(rows);
  save(options.output, result);
  return ExitCode::ok;
}

}  // namespace

void add_scale(CommandLine& line) {
  auto options = std::make_shared<ScaleOptions>();
  CLI::App& app = add_subcommand(
      line, "scale", "Model speedup and efficiency over GPUs, beside published figures",
      "polyring scale --machine minsky --model resnet50 --gpus 4..256\n"
      "  polyring scale --machine summit --batch 96 --algorithm multi-ring --gpus 6,1536,27648 "
      "--filesystem 500GB/s --jitter 5%\n"
      "  polyring scale --machine dgx-a100 --model gpt2-xl --batch 8 --compute-ms 900 --gpus 8,64 "
      "--algorithm "
      "multi-ring --strategy pipeline=4 --strategy intra-model=8",
      [options, &line] { return scale(*options, line.text); });
  options->machine.add_to(app);
  options->compute.add_to(app);
  options->plan.add_to(app, {"multi-ring", "ring", "halving-doubling", "tree", "parameter-server"}, true);
  auto* algorithm = app.get_option("--algorithm");
  algorithm->description(
      fmt::format("{}; nccl and mpi for what these would choose", algorithm->get_description()));
  app.add_option("--gpus", options->gpus,
                 "GPU counts: a list, or a range that doubles; by default those of --strategy, if it has all")
      ->default_str(kDefaultGpus)
      ->type_name("LIST");
  app.add_option("--bucket", options->bucket, "none, per-tensor or fused:SIZE")->capture_default_str();
  app.add_flag("--overlap", options->overlap, "Communicate while the backward pass goes on");
  app.add_option("--strategy", options->strategies,
                 "How work is divided: data, pipeline, intra-model, inter-model, such as data=64,pipeline=4; "
                 "without data, GPUs that are left make replicas; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=N,…");
  app.add_option("--micro-batches", options->micro_batches, "Of a pipeline; by default 4 for each stage")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  options->conditions.add_to(app);
  app.add_option("-d,--datatype", options->kind, "What gradients are sent as")
      ->capture_default_str()
      ->type_name("TYPE");
  auto* published =
      app.add_flag("--published", options->published,
                   "Every published result beside the model, for each combination of what was not "
                   "published: rails, overlap, batch");
  for (const char* own : {"--machine", "--from", "--rails", "--model", "--batch", "--algorithm", "--gpus",
                          "--bucket", "--overlap"}) {
    published->excludes(app.get_option(own));
  }
  app.add_flag("--explain", options->explain, "Also what limits each row, and every input with its source");
  app.add_option("-J,--output_file", options->output, "Write the result here, as JSON")->type_name("FILE");
}

}  // namespace polyring
